"""Texts of two languages, cut as splitters cut: every so many characters, between any two."""

#: Texts with numbers, dates and times, and few words twice.
TEXTS = {
    "en": """
The swimming bath on Mill Lane has been run by a society of 312 members since the spring of
1998. A single ticket costs 5.50 euros, a card for ten visits 47 euros, and children under six
swim free of charge if an adult goes with them. From May to September the outdoor pool is open
every day between 9:30 and 20:15; in winter there are only the two indoor lanes, which are 25
metres long. Whoever wants to learn to swim may join one of 14 courses a year, each with at most
12 pupils and lasting 45 minutes a week. The water is tested on Mondays at 7:00, and the results
of the last 60 days hang beside the entrance. In 2019 the roof was mended for 184,000 euros, of
which the county paid a third. Lockers take a coin of 2 euros, given back when the key is turned.
Dogs are not let in, but on the last Sunday of the season, when the pool is emptied, 130 of them
came in 2023. The café sells soup, bread and, on Fridays, pancakes; its terrace seats 85 guests.
""",
    "ko": """
방앗간길의 수영장은 1998년 봄부터 회원 312명으로 이루어진 모임이 꾸려 왔다. 한 번 들어가는 표는
5,500원, 열 번 쓰는 표는 47,000원이며 여섯 살 미만 어린이는 어른과 함께 오면 값을 내지 않는다.
바깥 수영장은 5월부터 9월까지 날마다 오전 9시 30분에 열어 저녁 8시 15분에 닫고, 겨울에는 길이
25미터인 실내 레인 두 개만 쓴다. 헤엄을 배우려는 사람은 한 해에 열리는 강좌 14개 가운데 하나에
들 수 있는데, 강좌마다 많아야 12명이 모여 일주일에 45분씩 배운다. 물은 월요일 아침 7시에
검사하고 지난 60일의 결과를 입구 옆에 붙여 둔다. 2019년에는 지붕을 고치는 데 1억 8,400만 원이
들었고 그 삼분의 일은 군청이 냈다. 사물함에는 동전 2천 원을 넣으며 열쇠를 돌리면 돌려받는다.
개는 들어갈 수 없으나 물을 빼는 마지막 일요일만은 예외여서 2023년에는 130마리가 다녀갔다. 찻집은
국과 빵을 팔고 금요일에는 전도 부치며, 바깥 자리에는 손님 85명이 앉을 수 있다.
""",
}
#: Sizes of chunks, and characters by which they overlap: from none to half of them.
SPLITS = [(40, 0), (40, 10), (60, 5), (60, 30), (100, 0), (100, 20), (200, 20), (400, 200)]


def cut(text, size, overlap=0):
    """Return the chunks of a text, so many characters each."""
    return [text[start : start + size] for start in range(0, len(text) - overlap, size - overlap)]


def stretches(text, n, rng, shortest=25, longest=150):
    """Return where some stretches of whole words begin and end in a text."""
    found = []
    while len(found) < n:
        start = text.rfind(" ", 0, rng.randrange(len(text) - longest)) + 1
        stop = text.rfind(" ", start, start + rng.randint(shortest, longest))
        if stop - start >= shortest:
            found.append((start, stop))
    return found
