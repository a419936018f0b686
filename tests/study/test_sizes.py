"""The sizes of runs beside what the papers state: the table that notebooks and pages show."""

from dlsim.files import read_toml, shared_file
from dlsim.study.session import SCALES, has_stated_size, show_sizes, table_of_sizes

PAPERS = ("mcdf", "inserted-idle-time", "steady-state", "cpu-gpu", "bricks")


def rows_of(paper):
    return table_of_sizes(paper).set_index("what").T.to_dict("list")


def test_full_scale_is_the_size_of_papers_m_and_i_and_quick_that_of_paper_b():
    own = {(paper, one) for paper in PAPERS for one in SCALES if has_stated_size(paper, one)}
    assert own == {("mcdf", "full"), ("inserted-idle-time", "full"), ("bricks", "quick")}


def test_a_size_stands_beside_what_the_paper_states():
    mcdf, steady = rows_of("mcdf"), rows_of("steady-state")
    stated = ["1,000,000 (6.1)", "100,000 (10 %)", "1,000,000"]
    assert mcdf["time units in which tasks arrive"] == ["mcdf", *stated]
    # 43 sizes of 16 platforms; 8 sizes at 8 connectivities, 12 platforms each
    assert steady["Tiers-like platforms"][1:] == ["29,298 (6.1)", "24 (0.082 %)", "688 (2.3 %)"]
    assert steady["random platforms"][-1] == "768 (0.28 %)"
    assert rows_of("bricks")["environments"][1:] == ["5 (4.1)", "5", "15 (3 times)"]
    assert rows_of("cpu-gpu")["runs of 8 batches"] == ["cpu-gpu", "nothing", "5", "30"]


def test_what_a_paper_states_is_quoted():
    for paper in PAPERS:
        for size in read_toml(shared_file("data/scales.toml"))[paper]["sizes"]:
            has = {"stated", "where", "quote"} & size.keys()
            assert has in (set(), {"stated", "where", "quote"}), size
            assert len(size.get("quote", "").split()) <= 25


def test_a_caption_says_which_scale_is_the_papers_own():
    assert "The scale full is the paper's own size." in show_sizes("mcdf").to_html()
    several = show_sizes(*PAPERS).to_html()
    assert "(bricks)" in several
    assert "(steady-state)" not in several
    assert "Neither scale is a size that the paper states." in show_sizes("cpu-gpu").to_html()
