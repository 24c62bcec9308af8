"""The client for web pages, in a real browser: what it asks again counts once."""

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from tests.service.serving import command, patient

LOAD = """async () => {
    const {Abex} = await import("/page/abex.js");
    window.abex = new Abex(location.origin, null, {patience: 20000});
}"""
DECIDE = "unit => abex.decide('home/banner', {unit})"
REWARD = "id => abex.reward('home/banner', id, 1)"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with command(f"sqlite:///{tmp_path_factory.mktemp('javascript')}/shop.db") as (_, found):
        yield found


@pytest.fixture
def client(address):
    with patient(address) as found:
        found.create("home/banner", ["red", "green"])
        yield found


@pytest.fixture
def page(browser, address):
    context = browser.new_context()
    found = context.new_page()
    found.goto(address)
    found.evaluate(LOAD)
    yield found
    context.close()


def test_a_visitor_gets_an_arm_and_its_click_counts_once(page, client):
    choice = page.evaluate(DECIDE, "ann")
    assert choice["arm"] in ("red", "green")
    assert 0.0 < choice["probability"] <= 1.0
    assert page.evaluate(DECIDE, "ann")["id"] == choice["id"]
    assert page.evaluate(REWARD, choice["id"]) is True
    assert page.evaluate(REWARD, choice["id"]) is False


def test_an_alias_names_who_decided(page, client):
    client.alias("front", {"home/banner": 100})
    choice = page.evaluate("abex.decide('front', {unit: 'bob'})")
    assert choice["player"] == "home/banner"
    assert page.evaluate("id => abex.reward('front', id)", choice["id"]) is True
    client.remove_alias("front")


def test_what_was_carried_out_and_not_answered_counts_once(page, client):
    before = client.summary("home/banner")["decisions"]
    lost = []

    def lose_the_first(route):
        answer = route.fetch()
        if len(lost) < 2:
            lost.append(answer.status)
            return (
                route.abort("connectionreset") if len(lost) == 1 else route.fulfill(status=503, body="later")
            )
        return route.fulfill(response=answer)

    page.route("**/decisions", lose_the_first)
    choice = page.evaluate(DECIDE, None)
    assert lost == [200, 200]  # both were carried out
    assert client.summary("home/banner")["decisions"] == before + 1
    assert client.reward("home/banner", choice["id"], 1.0)


def test_a_refusal_is_an_error_with_its_sentence_and_status(page, client):
    said = page.evaluate(
        "id => abex.reward('home/banner', id).catch(error => [error.message, error.status])", "nobody"
    )
    assert said[1] == 400
    assert "nobody" in said[0]
    said = page.evaluate("abex.decide('nowhere').catch(error => [error.message, error.status])")
    assert said[1] == 404


def test_it_is_small_and_needs_nothing(address):
    import httpx

    answer = httpx.get(f"{address}/page/abex.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert len(answer.content) < 2300
    code = [line for line in answer.text.splitlines() if not line.startswith("//")]
    assert not [line for line in code if "import" in line]
