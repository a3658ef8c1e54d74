"""The refusals of the core: every one names the number or the place that caused it."""


class CoreError(ValueError):
    """What the data cannot give is refused by name.

    *arguments: the message for a reader, with the numbers.
    code: which of the refusals of its class it is, such as ``one_level``; empty where there is one only.
    """

    def __init__(self, *arguments: object, code: str = "") -> None:
        super().__init__(*arguments)
        self.code = code
