"""The refusals of the core: every one names the number or the place that caused it."""


class CoreError(ValueError):
    """What the data cannot give is refused by name.

    Parameters
    ----------
    message : str
        For a reader, with the numbers.
    code : str
        Which of the refusals of its module it is, such as ``one_level``; empty where there is one only.
    """

    def __init__(self, message: str = "", code: str = "") -> None:
        super().__init__(message)
        self.code = code
