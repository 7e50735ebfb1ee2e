"""Files of keys that lie beside each other."""

from pathlib import Path

from ordercast import keyfiles


def test_keys_beside_each_other_have_ids_of_their_own(tmp_path: Path) -> None:
    """A header holds no more than an id: a key could not follow another one with the same."""
    ids = [keyfiles.write(tmp_path / f"{k}.key").id for k in range(100)]
    assert len(set(ids)) == 100 and all(1 <= each <= 127 for each in ids)
    again = keyfiles.write(tmp_path / "7.key", force=True)
    assert again.id not in {each for k, each in enumerate(ids) if k != 7}


def test_more_keys_than_ids_share_them(tmp_path: Path) -> None:
    assert len({keyfiles.write(tmp_path / f"{k}.key").name for k in range(130)}) == 130
