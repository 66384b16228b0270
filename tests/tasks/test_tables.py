from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item
from perdure.tasks.columns import Columns
from perdure.tasks.read import located_items, read_task

GERMAN = Columns("Frage", ("Antwort",))


@pytest.fixture
def table(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(text: str | bytes, name: str = "faq.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_csv_with_quotes_line_breaks_and_a_byte_order_mark(table) -> None:  # type: ignore[no-untyped-def]
    text = '\ufeffid,question,answer\r\n1,"Who said ""no, \nthanks""?",Ada\r\n\r\n2,Why?,"a, b"\r\n'
    items = [located.item for located in located_items(table(text))]
    assert items == [Item('Who said "no, \nthanks"?', ("Ada",)), Item("Why?", ("a, b",))]


@pytest.mark.parametrize(
    ("delimiter", "name"), [(",", "a.csv"), (";", "a.csv"), ("\t", "a.csv"), ("|", "a.csv"), ("\t", "a.tsv")]
)
def test_the_delimiter_is_the_one_that_shows_the_wanted_columns(table, delimiter: str, name: str) -> None:  # type: ignore[no-untyped-def]
    """Exports differ: of one public set nine files have semicolons and forty-eight commas."""
    path = table(f"Nr{delimiter}Frage{delimiter}Antwort\n1{delimiter}Wer?{delimiter}Ada\n", name)
    assert read_task(path, GERMAN).items == (Item("Wer?", ("Ada",)),)


def test_several_answers_by_separator_or_by_columns(table) -> None:  # type: ignore[no-untyped-def]
    path = table("question,answer,also,paraphrases\nq,Rome ; Roma,Rom,r1;r2\n")
    columns = Columns(answers=("answer", "also"), separator=";")
    assert read_task(path, columns).items == (Item("q", ("Rome", "Roma", "Rom"), ("r1", "r2")),)
    assert read_task(path).items == (Item("q", ("Rome ; Roma",), ("r1;r2",)),)  # without a separator texts stay whole


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("question,answer\nq,a\nr,\n", ":3", "column 'answer' is empty; write the answer"),
        ("question,answer\n ,a\n", ":2", "column 'question' is empty"),
        (
            'question,answer\n"a\nb",c\nr,a,b\n',
            ":4",
            "3 cells, and the header has 2 columns; put a cell with the delimiter (a comma)",
        ),
        ('question,answer\nq,"a\nr,b\n', ":2", "the row that begins here is not CSV"),
        (b"question,answer\nq,a\nr,\xe9\n", ":3", "not UTF-8 (byte 3 of the line, 0xe9)"),
        ("question,anwser\nq,a\n", ":1", "no column 'answers' or 'answer'; name the answers' column, one of: question, anwser"),
        ("q,answer\nq,a\n", ":1", "no column 'question'; known: answer, q"),
        ("", "", "is empty; write a header row"),
    ],
)
def test_a_bad_table_is_refused_with_its_line_and_column(table, text: str | bytes, place: str, problem: str) -> None:  # type: ignore[no-untyped-def]
    path = table(text)
    with pytest.raises(InputError) as refusal:
        read_task(path)
    assert str(refusal.value).startswith(f"{path}{place}")
    assert problem in str(refusal.value)


def test_a_question_answered_twice_is_refused_with_both_lines(table) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"faq\.csv:4: the question of line 2 again, with other answers"):
        read_task(table("question,answer\nq,a\nr,a\nq,b\n"))


def test_parquet_with_lists_nested_columns_and_numbers(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = {
        "question": ["q", "r"],
        "answer": [{"value": "Rome", "aliases": ["Roma", "Rome"]}, {"value": "Lima", "aliases": []}],
        "year": [1823, 1900],
        "share": [0.5, None],
    }
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    nested = Columns(answers=("answer.value", "answer.aliases"))
    assert read_task(tmp_path / "a.parquet", nested).items == (Item("q", ("Rome", "Roma")), Item("r", ("Lima",)))
    assert read_task(tmp_path / "a.parquet", Columns(answers=("year",))).items[0].answers == ("1823",)
    with pytest.raises(
        InputError, match=r"a\.parquet, row 1: column 'share' holds 0\.5 \(float\), not a text; write it as text"
    ):
        read_task(tmp_path / "a.parquet", Columns(answers=("share",)))
    with pytest.raises(InputError, match=r"a\.parquet: no column 'anser'; did you mean 'answer'"):
        read_task(tmp_path / "a.parquet", Columns(answers=("anser",)))
    (tmp_path / "no.parquet").write_text("question,answer\n")
    with pytest.raises(InputError, match=r"no\.parquet is not a Parquet file"):
        read_task(tmp_path / "no.parquet")
    with pytest.raises(InputError, match=r"b\.parquet does not exist; did you mean .*a\.parquet"):
        read_task(tmp_path / "b.parquet")


def test_a_data_set_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that `datasets` loads stands for the hub's: the same call, the same features."""
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "owner" / "name" / "train.jsonl").write_text(
        '{"q": "Where?", "a": {"text": ["Lima", "lima"]}}\n{"q": "", "a": null}\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    from perdure.tasks.tables import dataset_items

    items = dataset_items("owner/name", Columns("q", ("a.text",)))
    assert next(items).item == Item("Where?", ("Lima", "lima"))
    with pytest.raises(InputError, match=r"owner/name \(train\), row 2: column 'a\.text' is empty"):
        next(items)
    with pytest.raises(InputError, match="the data set owner/name, split test, can't be loaded: ValueError"):
        list(dataset_items("owner/name", split="test"))


def test_files_of_other_kinds_are_refused(table) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"files ending in \.xlsx are not read; name one that ends in \.jsonl, \.csv"):
        read_task(table("", "a.xlsx"))


def test_jsonl_with_fields_of_other_names(table) -> None:  # type: ignore[no-untyped-def]
    path = table('{"Frage": "Wer?", "Antwort": ["Ada", "A."]}\n{"Frage": "Wo?"}\n', "a.jsonl")
    items = located_items(path, GERMAN)
    assert next(items).item == Item("Wer?", ("Ada", "A."))
    with pytest.raises(InputError, match=r"a\.jsonl:2: no column 'Antwort'"):
        next(items)
