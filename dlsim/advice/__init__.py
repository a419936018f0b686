"""What a job log says about deadlines: how it ran, what could have been promised, and to whom."""

from dlsim.advice.questions import DEADLINES, Advice, Terms, advise

__all__ = ["DEADLINES", "Advice", "Terms", "advise"]
