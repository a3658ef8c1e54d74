from analytics.progress import progress_bar


def test_on_a_pipe_a_line_tells_how_far_it_is(capsys):
    with progress_bar("Validating", seconds=0) as show:
        show(1, 1200)
        show(1200, None)
    assert capsys.readouterr().err == "Validating: 1 of 1,200\nValidating: 1,200\n"


def test_what_takes_no_time_says_nothing(capsys):
    with progress_bar("Validating") as show:
        show(1, 2)
    assert capsys.readouterr().err == ""
