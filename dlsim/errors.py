"""The one exception family of dlsim: every error a user can cause derives from it."""


class DlsimError(Exception):
    """Base of everything dlsim raises on purpose."""


class InputError(DlsimError, ValueError):
    """A value that cannot be used: the message names it, the rule and the remedy."""


class ScheduleError(DlsimError, AssertionError):
    """A schedule that breaks a rule of its model: the message names the first one."""


class StudyError(DlsimError, RuntimeError):
    """A sweep, notebook or report that could not be completed."""
