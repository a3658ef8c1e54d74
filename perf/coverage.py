"""How often nominal 95% intervals cover, naive and richer ones, beside the published figures.

Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix E.4 (Tables 8 and 9, Figure 1): 1,000 draws
of each scenario at each N. The paper tells its figures in words: A falls from 45 to 5%, B reaches 52%, C 84%,
D and E recover the nominal level. The second line is what Table 8 gives when computed (STATISTICS §7.7): D
and E lie above 99%, since judges and temperatures averaged in full count as error. Run with
`python -m perf.coverage`.
"""

import time

from perf.studies.coverage import N_ITEMS, SCENARIOS, coverage_table

SEED = 20260
PUBLISHED = {
    "A": "45 at N = 20, 5 at N = 2,000",
    "B": "52",
    "C": "84",
    "D": "nominal",
    "E": "nominal",
    "E*": "not in the paper",
}
EXPECTED = {
    "A": (45.8, 31.2, 22.6, 16.2, 10.4, 7.3, 5.2),
    "B": (63.9, None, None, None, None, None, 50.2),
    "C": (88.1, None, None, None, None, None, 85.7),
}
AT_LEAST = {"D": "99 or more", "E": "99 or more", "E*": "95 or more"}


def main() -> None:
    start = time.perf_counter()
    table = coverage_table(SEED)
    seconds = time.perf_counter() - start
    print(f"{'coverage, %':<44}" + "".join(f"{f'N = {n:,}':>11}" for n in N_ITEMS) + "   published")
    for scenario in SCENARIOS:
        cells = [cell for cell in table if cell.scenario == scenario.name]
        figures = "".join(f"{f'{100 * c.coverage:.1f} ±{300 * c.mc_se:.1f}':>11}" for c in cells)
        print(f"{scenario.name + '  ' + scenario.summary:<44}{figures}   {PUBLISHED[scenario.name]}")
        print(f"{'':<4}{'to expect':<40}{_expected(scenario.name)}")
    print(f"± is three Monte Carlo standard errors; {len(table)} cells in {seconds:.1f} s")


def _expected(scenario: str) -> str:
    if scenario in AT_LEAST:
        return f"{AT_LEAST[scenario]:>11}"
    return "".join(f"{'' if figure is None else figure:>11}" for figure in EXPECTED[scenario])


if __name__ == "__main__":
    main()
