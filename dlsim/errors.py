"""The exceptions of dlsim: every error that a user can cause derives from DlsimError."""


class DlsimError(Exception):
    """Base class of all exceptions that dlsim raises."""


class InputError(DlsimError, ValueError):
    """A value that cannot be used; the message names the value, the rule and the remedy."""


class ScheduleError(DlsimError, AssertionError):
    """A schedule that breaks a rule of its model; the message names the first broken rule."""


class StudyError(DlsimError, RuntimeError):
    """A sweep, notebook or report that could not be completed."""
