"""What reviews of films, books, meals, hotels and tools are about, and what they say of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """What reviews of one kind of thing are about, and what they say of it, against and for."""

    things: Sequence[str]
    parts: Sequence[str]
    many: Sequence[str]
    says: tuple[Sequence[str], Sequence[str]]
    happens: tuple[Sequence[str], Sequence[str]]


def words(text: str) -> tuple[str, ...]:
    """Phrases written in one string, with commas between."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


GENERAL = (
    words(
        "bad, terrible, awful, horrible, poor, dreadful, disappointing, weak, mediocre, lousy,"
        "unpleasant, pathetic, a disaster, a disappointment, a mess, a let-down, appalling,"
        "unbearable, embarrassing, frustrating, annoying, sloppy, a waste of money, dismal"
    ),
    words(
        "good, great, excellent, superb, wonderful, brilliant, lovely, fantastic, perfect,"
        "outstanding, terrific, impressive, delightful, beautiful, amazing, fine, pleasant,"
        "enjoyable, remarkable, a joy, a pleasure, a treat, a success, marvellous, splendid"
    ),
)
FILM = Domain(
    words("film, movie, comedy, thriller, drama, sequel, series, documentary, show, picture"),
    words(
        "acting, plot, story, script, ending, cast, dialogue, music, direction, photography,"
        "pacing, humour, opening, lead actress, lead actor, camera work, soundtrack, premise"
    ),
    words("jokes, characters, performances, effects, songs, action scenes, two leads, twists"),
    (
        words(
            "boring, predictable, silly, tedious, slow, stupid, pointless, confusing, flat, clumsy,"
            "lifeless, far too long, dull, unfunny, shallow, forgettable, wooden, empty,"
            "a bore, ridiculous, clichéd, lazy, unconvincing, messy, overlong"
        ),
        words(
            "funny, moving, gripping, clever, touching, exciting, charming, fresh, powerful,"
            "witty, convincing, thrilling, smart, hilarious, warm, inventive, memorable,"
            "well told, original, subtle, heartfelt, entertaining, absorbing, honest, stunning"
        ),
    ),
    (
        words(
            "I hated it, I fell asleep, I walked out, I was bored, I wanted my money back,"
            "it put me to sleep, I lost interest after ten minutes, it drags on and on,"
            "it goes nowhere, nobody laughed, don't bother, skip it, save your money,"
            "I checked my watch all the time, it left me cold, I regret watching it"
        ),
        words(
            "I loved it, I enjoyed every minute, it made me laugh, it moved me to tears,"
            "I want to see it again, I was on the edge of my seat, I could not look away,"
            "I highly recommend it, go and see it, the time flew by, I laughed out"
            "it stayed with me for days, everyone clapped, a must-see, I was hooked"
        ),
    ),
)
BOOK = Domain(
    words("book, novel, biography, guide, cookbook, collection, memoir, textbook, audiobook"),
    words(
        "writing, story, style, plot, first chapter, ending, prose, language, author's voice,"
        "research, translation, middle part, argument, hero, narrator"
    ),
    words("characters, chapters, stories, recipes, examples, drawings, explanations, dialogues"),
    (
        words(
            "dull, dry, boring, confusing, badly written, repetitive, predictable, tedious,"
            "full of mistakes, hard to follow, shallow, long-winded, unreadable, slow, vague,"
            "outdated, preachy, clumsy, lifeless, unbelievable, pretentious"
        ),
        words(
            "gripping, well written, moving, clear, vivid, wise, funny, elegant, fascinating,"
            "useful, easy to read, thoughtful, rich, rewarding, absorbing, lively, tender,"
            "informative, beautifully written, engaging, believable"
        ),
    ),
    (
        words(
            "I gave up halfway, I could not finish it, I skipped whole pages, it bored me,"
            "I threw it away, I learned nothing, I returned it to the shop, I lost the thread,"
            "I would not read it again, I had to force myself to go on, leave it on the shelf"
        ),
        words(
            "I could not put it down, I read it in one night, I learned a lot, I loved it,"
            "I have given it to all my friends, I will read it again, it changed my mind,"
            "I was sorry when it ended, I recommend it to everyone, it kept me up all night"
        ),
    ),
)
MEAL = Domain(
    words("meal, restaurant, dinner, lunch, pizza, soup, dish, café, place, breakfast, curry"),
    words(
        "food, soup, steak, pasta, dessert, service, waiter, menu, wine, bread, fish, sauce,"
        "salad, coffee, chicken, rice, waitress, kitchen, atmosphere, cake"
    ),
    words("portions, vegetables, chips, starters, prices, desserts, noodles, staff, pancakes"),
    (
        words(
            "cold, bland, greasy, stale, soggy, overcooked, burnt, tasteless, too salty, dry,"
            "overpriced, slow, rude, tough, undercooked, watery, tiny, disgusting, rubbery,"
            "careless, unfriendly, inedible, sour, lukewarm"
        ),
        words(
            "delicious, tasty, fresh, crisp, tender, generous, friendly, well cooked, juicy,"
            "quick, attentive, full of flavour, warm, creamy, fairly priced, mouth-watering,"
            "perfectly cooked, welcoming, excellent value, light"
        ),
    ),
    (
        words(
            "we left hungry, I felt sick afterwards, we waited an hour, I sent it back,"
            "we will not come back, never again, I found a hair in it, nobody finished,"
            "I would not eat here again, they forgot our order, they ignored us, we walked out"
        ),
        words(
            "we will be back, we ate every bite, I asked for the recipe, I could eat it every day,"
            "everyone was happy, we cleaned our plates, we felt at home, I can recommend it,"
            "it melted in my mouth, we stayed all evening, the whole table loved it"
        ),
    ),
)
HOTEL = Domain(
    words("hotel, room, hostel, guest house, apartment, resort, campsite, stay, inn, cabin"),
    words(
        "bed, breakfast, pool, view, bathroom, location, reception, shower, lobby, bar, beach,"
        "air conditioning, carpet, balcony, receptionist, mattress, kitchen, garden, wifi"
    ),
    words("rooms, staff, beds, towels, sheets, owners, walls, facilities, neighbours"),
    (
        words(
            "dirty, noisy, cramped, rude, damp, uncomfortable, smelly, unfriendly, shabby, cold,"
            "broken, dark, run-down, overpriced, filthy, stained, unhelpful, mouldy, tiny,"
            "too small, too hot, worn out"
        ),
        words(
            "clean, quiet, comfortable, friendly, spacious, helpful, cosy, polite, bright, modern,"
            "spotless, peaceful, charming, welcoming, warm, well kept, elegant,"
            "close to everything, relaxing, good value"
        ),
    ),
    (
        words(
            "we did not sleep, we left after one night, we asked for our money back,"
            "nobody answered the phone, there were insects in the bed, nothing worked,"
            "we had to change rooms twice, stay away, we will never stay here again, avoid it"
        ),
        words(
            "we slept very well, we will stay here again, we felt welcome,"
            "we did not want to leave, they thought of everything, I would book it again,"
            "they upgraded us for free, the children loved it, we had a wonderful week,"
            "I recommend it to families"
        ),
    ),
)
TOOL = Domain(
    words(
        "drill, saw, knife, vacuum cleaner, kettle, toaster, phone, laptop, printer, app,"
        "mower, hammer, torch, ladder, camera, blender, tool, product, headset, watch"
    ),
    words(
        "battery, handle, blade, motor, manual, screen, keyboard, design, build quality, sound,"
        "grip, price, packaging, cable, support, software, charger, lid, picture, lens"
    ),
    words("buttons, instructions, parts, screws, wheels, controls, speakers, results, straps"),
    (
        words(
            "flimsy, useless, unreliable, blunt, noisy, cheap, badly made, hard to use, inaccurate,"
            "fragile, clumsy, defective, weak, faulty, slow, uncomfortable, overpriced, unclear,"
            "dangerous, worthless, wobbly, rusty"
        ),
        words(
            "sturdy, reliable, sharp, powerful, quiet, handy, solid, well made, easy to use,"
            "accurate, comfortable, fast, strong, precise, light, worth the money, clear, durable,"
            "smooth, practical, safe, versatile"
        ),
    ),
    (
        words(
            "it broke after a week, I sent it back, it stopped working, I regret buying it,"
            "it fell apart, I want a refund, do not buy it, it never worked, it leaks,"
            "it arrived damaged, I threw it in the bin, it overheats, it let me down"
        ),
        words(
            "it works perfectly, I would buy it again, I use it every day, it saves me hours,"
            "it does what it promises, it has never let me down, worth every penny, I am very happy"
            "with it, it still works like new, it made the job easy, I bought a second one"
        ),
    ),
)
DOMAINS = (FILM, FILM, BOOK, MEAL, HOTEL, TOOL)
DEGREES = words("very, really, so, extremely, quite, truly, absolutely, incredibly, rather, just")
