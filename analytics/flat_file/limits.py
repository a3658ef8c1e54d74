"""How much a flat file or a submission may hold; beyond it reading ends at once, whatever else is wrong."""

from dataclasses import dataclass

from analytics.flat_file.faults import refuse

MAX_VALUE_BYTES = 4096  # of one field of metadata
MAX_RATIO = 250  # of decompressed to compressed bytes
FREE_BYTES = 32 << 20  # decompressed, before the ratio is looked at


@dataclass(frozen=True)
class Limits:
    """What is refused for its size.

    n_bytes: of text once decompressed; of Parquet, of its values as text.
    n_rows: rows at fault included.
    n_name_characters: of the distinct names of all columns together.
    n_metadata_bytes: of all metadata together; None where only `n_bytes` bounds them.
    n_settings: of prompt variant, judge, temperature and run together; None: as many as there are rows.
    """

    n_bytes: int
    n_rows: int
    n_name_characters: int
    n_metadata_bytes: int | None
    n_settings: int | None

    def check_bytes(self, n: int) -> None:
        """Refuse `n` decompressed bytes if they are too many."""
        if n > self.n_bytes:
            raise refuse(f"the file holds more than {self.n_bytes:,} bytes once decompressed")

    def check_ratio(self, n: int, n_compressed: int) -> None:
        """Refuse what grows on decompression as no file of outcomes does."""
        if n > max(FREE_BYTES, MAX_RATIO * n_compressed):
            raise refuse(f"the file grows more than {MAX_RATIO}-fold on decompression")

    def check_rows(self, n: int) -> None:
        """Refuse `n` rows if they are too many."""
        if n > self.n_rows:
            raise refuse(f"there are more than {self.n_rows:,} rows")

    def check_names(self, n_characters: int) -> None:
        """Refuse distinct names of `n_characters` together if they are too long."""
        if n_characters > self.n_name_characters:
            raise refuse(f"the distinct names have more than {self.n_name_characters:,} characters together")

    def check_settings(self, n: int) -> None:
        """Refuse `n` settings if they are too many."""
        if self.n_settings is not None and n > self.n_settings:
            what = "prompt_variant, judge, temperature and run"
            raise refuse(f"there are {n:,} settings ({what}); at most {self.n_settings:,} are allowed")


FILE = Limits(512 << 20, 10_000_000, 2_000_000, None, None)
SUBMISSION = Limits(16 << 20, 20_000, 200_000, 64 << 10, 500)
DELIVERED = Limits(512 << 20, 2_000_000, 200_000, 64 << 20, 500)  # a file of one agent, from a stranger
