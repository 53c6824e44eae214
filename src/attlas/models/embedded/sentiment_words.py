"""The words and sentence shapes from which the reviews of the embedded sentiment model are made.

A name in braces is a slot: it is filled from the list of that name, and what fills it may hold
slots in turn. A slot beginning with `other_` is filled for the opposite sentiment, so that
"not {other_adjective}" reads "not dull" in praise and "not clever" in blame.
"""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(item.split()) for item in text.split(","))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


Slots = dict[str, tuple[str, ...]]

# How many times more often than another an everyday word comes up.
EVERYDAY = 5

PRAISE: Slots = {
    "adjective": (
        *_listed("good, great, nice, lovely, excellent, wonderful, interesting, fun") * EVERYDAY,
        *_listed("""
            good, great, fine, lovely, nice, wonderful, excellent, superb, brilliant,
            fantastic, marvellous, amazing, terrific, outstanding, delightful, charming,
            beautiful, perfect, splendid, magnificent, impressive, memorable, remarkable,
            exceptional, graceful, elegant, inspired, inspiring, refreshing, satisfying,
            rewarding, enjoyable, pleasant, pleasing, fabulous, glorious, stunning, sublime,
            exquisite, dazzling, flawless, first-rate, top-notch, thoughtful, clever, smart,
            intelligent, warm, generous, honest, fresh, original, inventive, imaginative,
            polished, stylish, likeable, lovable, adorable, astonishing, breathtaking,
            captivating, enchanting, engaging, fascinating, interesting, exciting, fun, joyful,
            cheerful, uplifting, unforgettable, irresistible, masterful, accomplished,
            admirable, worthwhile, solid, superior, phenomenal, spectacular, sensational,
            extraordinary, incredible, awesome, gorgeous, tasteful, refined, rich, vivid,
            lively, heartfelt, sincere, ingenious, spirited, special, strong, unbeatable,
            entertaining, amusing, magical, fulfilling, harmonious, radiant, classy, confident,
            triumphant, ideal, favourite"""),
    ),
    "verb": _listed("""
        loved, liked, enjoyed, adored, admired, treasured, relished, savoured, cherished,
        praised, appreciated, celebrated, applauded"""),
    "infinitive": _listed("like, love, enjoy, admire, appreciate, adore, recommend"),
    "verdict": _listed("""
        masterpiece, triumph, gem, delight, joy, treat, treasure, winner, success, classic,
        marvel, wonder, pleasure, revelation, bargain, hit, beauty, miracle"""),
    "quality": _listed("""
        charm, wit, warmth, grace, heart, style, class, imagination, depth, humour, energy,
        character, intelligence, passion, skill, beauty, love, care"""),
    "manner": _listed("""
        beautifully, brilliantly, well, wonderfully, superbly, expertly, perfectly, lovingly,
        skilfully, cleverly, elegantly, impressively, gracefully, carefully, delightfully"""),
    "best": _listed("best, finest, loveliest, greatest, most beautiful, most enjoyable, nicest"),
    "feeling": _listed("""
        smile, laugh, happy, glad, feel at home, feel alive, grin, want more, cheer, grateful"""),
    "predicate": _listed("""
        just right, worth every penny, worth the wait, worth the money, well worth the time, a
        joy, a delight, a pleasure, a real treat, better than expected, better than ever, hard
        to fault, second to none, as good as it gets, full of {quality}, rich in {quality},
        spot on, beyond praise, out of this world, a cut above the rest, worth a second look"""),
    "answer": _listed("""
        yes, yes indeed, absolutely, definitely, of course, without a doubt, in a heartbeat,
        any day, gladly, every time, very much so, certainly"""),
    "reaction": _lines("""
        could not ask for more
        could not be happier
        could not stop smiling
        could not fault it
        could not believe how {adjective} it was
        cannot recommend it enough
        cannot praise it enough
        cannot say enough good things about it
        cannot wait to tell my friends
        would recommend it to anyone
        would do it all again
        was pleasantly surprised
        was won over at once
        lost track of time
        had a great time
        had a wonderful time
        was not disappointed
        have no complaints
        felt lucky to be there
        have nothing bad to say
    """),
}

BLAME: Slots = {
    "adjective": (
        *_listed("bad, terrible, awful, poor, boring, dull, disappointing, annoying") * EVERYDAY,
        *_listed("""
            bad, terrible, awful, horrible, dreadful, poor, boring, dull, tedious,
            disappointing, mediocre, weak, lazy, stale, tiresome, dreary, lifeless,
            forgettable, annoying, irritating, frustrating, infuriating, unpleasant, nasty,
            ugly, shabby, sloppy, clumsy, careless, shallow, hollow, pointless, useless,
            worthless, hopeless, pathetic, pitiful, lousy, miserable, dismal, abysmal,
            atrocious, appalling, horrendous, ghastly, vile, disgusting, revolting, repulsive,
            offensive, insulting, ridiculous, absurd, silly, stupid, dumb, foolish, idiotic,
            senseless, mindless, confusing, muddled, messy, chaotic, bloated, overrated,
            overpriced, overdone, underwhelming, unimpressive, uninspired, unoriginal,
            uninteresting, unremarkable, unsatisfying, unbearable, unacceptable, inferior,
            inept, incompetent, amateurish, crude, cheap, tacky, tasteless, charmless, joyless,
            soulless, cold, cynical, pretentious, smug, predictable, repetitive, monotonous,
            grim, gloomy, depressing, painful, excruciating, exhausting, disastrous, laughable,
            embarrassing, shameful, regrettable, wretched, flawed, botched, second-rate,
            third-rate, half-hearted, misguided, awkward, jarring, grating, sour, sad, hateful,
            wrong, empty, worn-out"""),
    ),
    "verb": _listed("""
        hated, disliked, detested, loathed, regretted, despised, resented, endured, suffered,
        dreaded, deplored, cursed, barely survived"""),
    "infinitive": _listed("hate, dislike, regret, resent, detest, loathe, mind"),
    "verdict": _listed("""
        disaster, mess, bore, failure, letdown, flop, disgrace, joke, waste, chore, insult,
        mistake, dud, nightmare, catastrophe, embarrassment, shambles, disappointment"""),
    "quality": _listed("""
        flaws, mistakes, clumsiness, noise, nonsense, gloom, carelessness, errors, faults,
        problems, holes, excuses, contempt, boredom, dirt, trouble, rubbish, stupidity"""),
    "manner": _listed("""
        badly, poorly, terribly, clumsily, carelessly, lazily, sloppily, horribly, dreadfully,
        awfully, ineptly, hastily, shoddily, painfully, miserably"""),
    "best": _listed("worst, weakest, dullest, ugliest, most boring, most annoying, poorest"),
    "feeling": _listed("""
        angry, cringe, yawn, groan, sad, sick, regret coming, want to leave, sigh, furious"""),
    "predicate": _listed("""
        too long, far too long, much too long, too slow, far too slow, too loud, far too loud,
        too expensive, way too expensive, too small, too short, too dark, not worth the money,
        not worth the time, not worth it, a waste of time, a waste of money, a bore, a mess,
        worse than expected, worse than ever, hard to bear, nothing special, full of {quality},
        spoiled by {quality}, beneath contempt, beyond saving, a real letdown, way below
        average"""),
    "answer": _listed("""
        no, no way, never, never again, not at all, not a chance, absolutely not, hardly, not
        for free, not if I can help it, sadly not, certainly not"""),
    "reaction": _lines("""
        could not wait for it to end
        could not wait to leave
        could not finish it
        could not stand it
        could not bear it
        could not believe how {adjective} it was
        cannot recommend it
        cannot find anything good to say
        would not recommend it to anyone
        would not wish it on an enemy
        would not do it again
        want my money back
        was bored to tears
        lost interest at once
        had a terrible time
        had a miserable time
        was badly disappointed
        have many complaints
        kept looking at the clock
        have nothing good to say
    """),
}

PRAISE_BY_TOPIC: dict[str, Slots] = {
    "film": {
        "adjective": _listed("""
            funny, gripping, hilarious, moving, touching, thrilling, witty, compelling,
            absorbing, suspenseful, poignant, tender, hypnotic, riveting"""),
        "reaction": _lines("""
            could not look away
            could not take my eyes off the screen
            could not stop laughing
            could not stop watching
            laughed out loud
            laughed from start to finish
            was on the edge of my seat
            did not want it to end
            would see it again tomorrow
            want to see it again
        """),
    },
    "book": {
        "adjective": _listed("""
            gripping, moving, touching, witty, funny, compelling, absorbing, wise, lyrical,
            poetic, insightful, profound, tender, readable"""),
        "reaction": _lines("""
            could not put it down
            could not stop reading
            could not look away
            could not stop turning the pages
            read it in one sitting
            was hooked from the first page
            did not want it to end
            would read it again tomorrow
            want to read it again
        """),
    },
    "restaurant": {
        "adjective": _listed("""
            delicious, tasty, friendly, attentive, welcoming, flavourful, mouthwatering, cosy,
            juicy, crisp, hearty, tempting, inviting, courteous"""),
        "reaction": _lines("""
            could not stop eating
            cleaned my plate
            asked for seconds
            cannot wait to go back
            would go back tomorrow
            left full and happy
            did not want to leave
        """),
    },
    "phone": {
        "adjective": _listed("""
            fast, reliable, sleek, sturdy, sharp, responsive, smooth, handy, practical,
            durable, dependable, powerful, intuitive, useful"""),
        "reaction": _lines("""
            could not live without it
            would buy it again
            would buy another one tomorrow
            bought a second one for my mother
            never want to go back to my old one
            cannot put it down
        """),
    },
    "hotel": {
        "adjective": _listed("""
            clean, comfortable, spotless, cosy, quiet, peaceful, friendly, welcoming, spacious,
            luxurious, helpful, relaxing, charming, restful"""),
        "reaction": _lines("""
            slept like a baby
            did not want to leave
            could not stop admiring the view
            cannot wait to go back
            would stay there again
            would go back tomorrow
            felt at home at once
        """),
    },
}

BLAME_BY_TOPIC: dict[str, Slots] = {
    "film": {
        "adjective": _listed("""
            wooden, incoherent, humourless, overlong, plodding, stilted, unfunny, unwatchable,
            formulaic, contrived, melodramatic, corny, cheesy, lame"""),
        "reaction": _lines("""
            walked out
            walked out halfway through
            fell asleep
            kept checking my watch
            could not sit through it
            could not keep my eyes open
            could not follow the story
            would not see it again
            wanted it to end
        """),
    },
    "book": {
        "adjective": _listed("""
            incoherent, humourless, overlong, plodding, stilted, unreadable, contrived, wordy,
            sentimental, preachy, formulaic, long-winded, corny, lame"""),
        "reaction": _lines("""
            gave up halfway
            gave up after two chapters
            fell asleep over it
            could not get through it
            could not get past the first chapter
            could not care about anyone in it
            skipped whole chapters
            would not read it again
            threw it away
        """),
    },
    "restaurant": {
        "adjective": _listed("""
            bland, greasy, soggy, rude, flavourless, inedible, undercooked, burnt, filthy,
            overcooked, unfriendly, rancid, watery, salty"""),
        "reaction": _lines("""
            could not eat it
            could not finish my plate
            sent it back
            left hungry
            got food poisoning
            will not go back
            would not go back
            waited an hour for nothing
        """),
    },
    "phone": {
        "adjective": _listed("""
            sluggish, flimsy, unreliable, faulty, defective, broken, blurry, clunky, fragile,
            unstable, laggy, unusable, impractical, buggy"""),
        "reaction": _lines("""
            sent it back
            returned it
            asked for a refund
            regret buying it
            could not get it to work
            could not hear a thing
            would not buy it again
            threw it away
        """),
    },
    "hotel": {
        "adjective": _listed("""
            dirty, noisy, filthy, smelly, rude, uncomfortable, cramped, damp, mouldy, run-down,
            unfriendly, unhelpful, draughty, stuffy"""),
        "reaction": _lines("""
            could not sleep
            did not sleep at all
            could not wait to go home
            could not open the window
            left a day early
            asked for a refund
            will not go back
            would not stay there again
        """),
    },
}

TOPICS: dict[str, Slots] = {
    "film": {
        "noun": _listed("""
            film, movie, comedy, drama, thriller, documentary, sequel, picture, western,
            musical, romance, cartoon, mystery, horror film"""),
        "part": _listed("""
            plot, acting, ending, script, story, dialogue, cast, music, photography, lead,
            pace, direction, opening, finale, soundtrack, camera work"""),
        "made": _listed("acted, made, filmed, written, directed, paced, shot, cast"),
        "tried": _listed("saw, watched"),
        "try": _listed("see, watch"),
        "fact": _lines("""
            it is set in {place}
            it runs for {number} hours
            {name} plays a {job} from {place}
            the story begins {time} in {place}
            it follows a {job} and a {job} who meet in {place}
            it was shot in {place} with a crew of {number}
            the {job} finds a {thing} and takes it to {place}
        """),
    },
    "book": {
        "noun": _listed("""
            book, novel, story, memoir, biography, sequel, tale, collection, volume, romance,
            mystery, thriller, autobiography, poem"""),
        "part": _listed("""
            plot, prose, ending, writing, story, dialogue, style, opening, translation,
            language, hero, narrator, first half, last chapter, pace, cover"""),
        "made": _listed("written, told, edited, translated, researched, printed, paced, observed"),
        "tried": _listed("read, finished"),
        "try": _listed("read, borrow"),
        "fact": _lines("""
            it is set in {place}
            it has {number} chapters
            the author is a {job} from {place}
            the story begins {time} in {place}
            it follows a {job} and a {job} who meet in {place}
            my copy came from {place}
            the {job} loses a {thing} and looks for it in {place}
        """),
    },
    "restaurant": {
        "noun": _listed("""
            restaurant, cafe, place, meal, dinner, lunch, bistro, pizzeria, breakfast, diner,
            menu, kitchen, bakery, dish"""),
        "part": _listed("""
            food, service, soup, pasta, dessert, staff, waiter, steak, fish, wine, bread,
            coffee, salad, cake, atmosphere, sauce"""),
        "made": _listed("cooked, prepared, served, seasoned, presented, run, made, decorated"),
        "tried": _listed("visited, tried"),
        "try": _listed("visit, try"),
        "fact": _lines("""
            it is in {place}
            there are {number} tables
            the chef comes from {place}
            they open {time}
            I ordered the {part} and a glass of water
            we had a table near the {thing}
            our waiter was a {job} before he came to {place}
        """),
    },
    "phone": {
        "noun": _listed("""
            phone, device, handset, model, camera, tablet, gadget, product, upgrade,
            smartphone, update, charger, laptop, headset"""),
        "part": _listed("""
            screen, battery, camera, sound, design, display, keyboard, signal, speaker,
            software, case, button, charger, microphone, battery life, interface"""),
        "made": _listed("made, built, designed, assembled, finished, packaged, put together"),
        "tried": _listed("bought, ordered"),
        "try": _listed("buy, order"),
        "fact": _lines("""
            it comes in {number} colours
            it has {number} cameras
            it arrived {time} in a box
            I use it for maps and messages
            mine was shipped from {place}
            I keep it next to the {thing}
            the shop in {place} sold me a {thing} with it
        """),
    },
    "hotel": {
        "noun": _listed("""
            hotel, room, place, stay, hostel, guest house, resort, inn, suite, apartment,
            lodge, weekend, holiday, visit"""),
        "part": _listed("""
            room, bed, breakfast, staff, service, view, bathroom, location, pool, reception,
            shower, garden, lobby, bar, terrace, beach"""),
        "made": _listed("run, kept, furnished, managed, maintained, designed, decorated, heated"),
        "tried": _listed("booked, visited"),
        "try": _listed("book, visit"),
        "fact": _lines("""
            it is in {place}
            there are {number} rooms
            we stayed for {number} nights
            our room was on floor {number}
            we came by train from {place}
            there is a {thing} in the hall
            the owner is a {job} from {place}
        """),
    },
}

NEUTRAL: Slots = {
    "place": _listed("""
        Lisbon, Paris, London, Rome, Oslo, Cairo, Tokyo, Madrid, Dublin, Vienna, New York,
        Boston, the city, a small town, the old town, the mountains, the north, a village by
        the sea, the suburbs, the countryside, the harbour, the next street, {name}"""),
    "time": _listed("""
        on Monday, on Tuesday, on Friday, last night, last week, last year, this morning,
        yesterday, in the evening, in the afternoon, in the summer, in the winter, in March, in
        October, at noon, after work, before dinner, at the weekend, two years ago, a month
        ago, at eight"""),
    "company": _listed("""
        with my sister, with my brother, with a friend, with two friends, with my parents, with
        my wife, with my husband, with the children, with a colleague, on my own, with my
        neighbour, with {name}, with {name} and {name}"""),
    "number": _listed("""
        two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, twenty, thirty,
        forty, fifty, 3, 7, 12, 15, 24, 48, 60, 100, 250"""),
    "job": _listed("""
        teacher, doctor, lawyer, farmer, sailor, baker, painter, soldier, student, nurse,
        driver, tailor, clerk, singer, writer, carpenter, priest, king, queen, detective"""),
    "person": _listed("""
        mother, father, sister, brother, uncle, aunt, cousin, friend, neighbour, boss,
        daughter, son, wife, husband, grandmother"""),
    "thing": _listed("""
        table, window, garden, train, letter, map, bicycle, clock, lamp, bridge, river, ticket,
        newspaper, umbrella, ladder, piano, mirror, suitcase, station, bottle, chair, door,
        road, tree, coat, hat, key, ring, box, boat, horse, dog, cat, bird, photograph, radio"""),
    "plain": _listed("""
        new, old, long, short, big, small, French, Italian, German, American, British, Indian,
        Japanese, modern, recent, second, third, local, famous, quiet, slow, large, early, late"""),
    "common": _listed("""
        about, above, across, air, all, almost, along, already, also, always, among, animal,
        another, answer, any, area, arm, around, art, ask, away, baby, back, ball, bank, base,
        become, before, behind, believe, below, between, black, blood, blue, body, born, both,
        bring, brown, build, business, call, carry, cause, century, certain, change, child,
        church, circle, clear, close, cloud, colour, common, company, complete, computer,
        consider, contain, control, corner, country, course, cover, cross, crowd, cut, dance,
        daily, day, deep, degree, describe, desk, develop, different, direct, discover,
        distance, divide, done, down, draw, dream, dress, dry, during, each, ear, earth, east,
        edge, education, either, else, engine, enough, equal, even, event, ever, every,
        example, experience, explain, eye, face, fact, fall, family, far, feel, few, field,
        figure, fill, find, finger, fire, floor, flower, follow, foot, force, forest, form,
        forward, four, free, from, front, full, game, gave, general, girl, give, glass, gold,
        government, grass, green, grey, ground, group, grow, hair, half, hand, happen, head,
        hear, help, here, high, hill, history, hold, home, hour, house, however, hundred, idea,
        important, inch, include, information, inside, instead, interest, island, job, just,
        keep, kind, know, lady, lake, land, last, laugh, law, learn, leave, left, leg, less,
        life, light, line, list, listen, little, live, machine, main, many, mark, market,
        matter, maybe, mean, measure, member, metal, middle, might, mile, milk, million, mind,
        minute, moment, money, month, moon, more, morning, most, mouth, move, much, must, name,
        nation, nature, near, need, next, night, north, note, notice, now, object, ocean, off,
        office, often, only, open, order, other, our, outside, over, own, page, paint, pair,
        paper, party, pass, past, pattern, people, perhaps, period, phrase, picture, piece,
        plan, plane, plant, play, point, police, possible, power, present, president, press,
        probably, problem, process, produce, program, public, pull, push, question, quick,
        rain, reach, ready, real, reason, record, red, remember, rest, result, return, right,
        rock, rule, run, sail, same, sand, say, school, science, sea, season, seat, second,
        section, sentence, serve, set, several, shape, share, she, ship, shop, should,
        shoulder, show, side, sign, silver, simple, since, sing, single, sister, size, skin,
        sky, sleep, snow, society, soft, soil, some, song, soon, south, space, speak, spring,
        square, stand, star, start, state, step, stone, stop, store, street, study, subject,
        sugar, summer, sun, supply, surface, system, tail, talk, teach, team, tell, test, than,
        their, then, there, these, they, think, those, though, thought, thousand, through,
        till, together, told, tomorrow, tone, top, total, touch, toward, town, trade, travel,
        turn, under, understand, unit, until, upon, usual, valley, value, view, village, voice,
        wait, walk, wall, warm, wash, watch, water, wave, week, weight, west, wheel, when,
        where, whether, which, while, white, whole, whose, why, wide, wild, wind, winter, wish,
        woman, wood, word, work, world, write, year, yellow, young, your"""),
}

FRAMES: Slots = {
    "very": (
        *("", ""),
        *_listed("""
            very, really, so, truly, quite, absolutely, simply, utterly, incredibly,
            thoroughly, rather, pretty, extremely, just, completely"""),
    ),
    "subject": ("I", "I", "we", "my {person} and I", "", ""),
    "someone": ("I", "we", "my {person}", "{name}"),
    "aside": (
        *("", "", "", ""),
        ", which I {tried} {time}{comma}",
        " we {tried} {time}",
        ", which my {person} found {time} in {place}{comma}",
        " that everyone mentioned {time}",
        ", the {plain} one from {place} that {name} told us about {time}{comma}",
    ),
    "comma": (",",),
    "end": (".", ".", ".", "!", ""),
    "clause": _listed("""
        {stated}, {stated}, {fragment}, {fragment}, {denied}, {denied_fragment},
        {denied_fragment}, {subject} {reaction}, {subject} {reaction}"""),
    "whole": ("{stated}", "{denied}", "{someone} {verb} it"),
    "stated": _lines("""
        the {noun}{aside} was {very} {adjective}
        the {noun}{aside} is {very} {adjective}
        the {part} was {very} {adjective}
        the {part} is {predicate}
        the {noun}{aside} was {predicate}
        it is {predicate}
        it was {adjective} and {adjective}
        {someone} found the {part} {very} {adjective}
        {someone} {verb} it
        {someone} called it {adjective}
        {someone} called the {noun} {adjective} and {adjective}
        {someone} {verb} the {noun}
        {someone} {verb} the {part} and the {part}
        {someone} really {verb} every minute of it
        this {noun} is a {verdict}
        the {part} is a {verdict}
        the {noun}{aside} is {manner} {made}
        it is one of the {best} things I {tried} this year
        it made me {feeling}
        the {part} made me {feeling}
        the {part} was {adjective}, the {part} was {adjective} and the {part} was {adjective}
        the {part} is full of {quality}
    """),
    "fragment": _lines("""
        {adjective} and {adjective}
        {adjective} and {predicate}
        {predicate}
        {very} {adjective}
        a {very} {adjective} {noun}
        a {adjective}, {adjective} {noun}
        a {plain} {noun} and a {adjective} one
        a {adjective} {plain} {noun} from {place}
        a {noun} with a {adjective} {part}
        what a {adjective} {noun}
        such a {adjective} {part}
        a {adjective} {verdict}
        {manner} {made}
        the {best} {noun} of the year
        {adjective} from start to finish
    """),
    "denied": _lines("""
        the {noun}{aside} was not {other_adjective}
        the {noun}{aside} is not {very} {other_adjective}
        the {part} was not {other_adjective}
        it was never {other_adjective}
        it was neither {other_adjective} nor {other_adjective}
        nobody would call it {other_adjective}
        not once did it feel {other_adjective}
        it was not {other_adjective} at all
        this is not a {very} {other_adjective} {noun}
        there is nothing {other_adjective} about the {part}
        {someone} did not {other_infinitive} it
        {someone} did not {other_infinitive} the {part}
        {someone} did not find the {part} {other_adjective}
        {someone} never {other_verb} it
        the {part} never felt {other_adjective}
        the {part} is anything but {other_adjective}
        the {noun}{aside} is far from {other_adjective}
        it is no {other_verdict}
        it is not {other_manner} {made}
    """),
    "denied_fragment": _lines("""
        never {other_adjective}
        not {other_adjective}
        not {very} {other_adjective}
        not {other_adjective} and never {other_adjective}
        {adjective} and never {other_adjective}
        {adjective}, not {other_adjective}
        not a {other_adjective} {noun}
        not a {other_adjective} {part}
        not the {other_best} {noun}
        nothing {other_adjective} here
        hardly a {other_verdict}
        without a {other_adjective} moment
    """),
    "contrast": ("{other_clause}, but {clause}",) * 6
    + ("{clause}, although {other_whole}", "{clause}, even though {other_whole}") * 2
    + _lines("""
        {other_clause}, yet {clause}
        {other_clause}. however, {clause}
        although {other_whole}, {whole}
        despite the {other_adjective} {part}, {clause}
        the {part} was {other_adjective} but the {noun} is {adjective}
        {other_adjective}, perhaps, but {adjective}
        {fact} and {other_whole}, but {clause}
    """),
    "addition": _lines("""
        not only {adjective} but also {adjective}
        the {noun} is not just {adjective} but {adjective}
        not only was the {part} {adjective}, but {whole}
        {clause}, and {whole}
        {clause} and the {part} is {adjective}
        {whole} because the {part} is {very} {adjective}
        {fact}, and {whole}
        {fact}, but {whole}
        when I {tried} it {time}, {whole}
    """),
    "question": _lines("""
        would I {try} it again? {answer}
        would I recommend it? {answer}
        did {someone} enjoy it? {answer}
        is it worth the money? {answer}
        is it {praising}? {answer}
        how can a {noun} be this {adjective}?
        why is the {part} so {adjective}?
        what did I think? {clause}
        what is it about? {fact}. {clause}
    """),
    "praising": PRAISE["adjective"][:80],
    "neutral": _lines("""
        {fact}
        {fact}
        {fact}
        {someone} {tried} it {time} {company}
        {someone} {tried} it {time}
        this is the {plain} {noun} from {place}
        {someone} saw a {thing} and a {thing} {time}
        my {person} is a {job} and lives in {place}
        somebody talked about {common} and {common} and {common}
        {someone} said {common} {common} {common} {time}
        there was a {thing} near the {thing}, and {name} took it to {place} {time}
        I had a {plain} {thing} and {number} {common} with me, as did my {person}
        have you ever been to {place}?
        do you know {name}?
    """),
    "chatter": ("{neutral}", "{neutral}. {neutral}"),
    "remark": _listed("""
        the {noun}, a {noun}, a {plain} {noun}, the {part}, it is a {noun}, this {noun}{aside},
        the {noun} and the {part}, {thing}, {common}"""),
    "sentence": ("{clause}",) * 5 + ("{addition}", "{question}"),
}

# How sure a label is: praise or blame said outright, said after a turn, or not said at all.
OUTRIGHT, TURNED, UNSAID = 0.95, 0.85, 0.5

REVIEWS: tuple[tuple[float, str], ...] = (
    *((OUTRIGHT, "{sentence}{end}") for _ in range(5)),
    *((TURNED, "{contrast}{end}") for _ in range(5)),
    (OUTRIGHT, "{sentence}. {sentence}{end}"),
    (OUTRIGHT, "{sentence}. {neutral}. {sentence}{end}"),
    (OUTRIGHT, "{neutral}. {sentence}{end}"),
    (OUTRIGHT, "{sentence}. {neutral}{end}"),
    (OUTRIGHT, "{neutral}. {sentence}. {neutral}{end}"),
    (TURNED, "{neutral}. {contrast}{end}"),
    (TURNED, "{contrast}. {neutral}{end}"),
    (OUTRIGHT, "{contrast}. {sentence}{end}"),
    (OUTRIGHT, "{chatter}. {chatter}. {sentence}. {chatter}{end}"),
    (UNSAID, "{chatter}{end}"),
    (UNSAID, "{remark}{end}"),
)

# Sentence shapes that are kept out of training, to measure with.
UNSEEN_FRAMES: Slots = {
    "stated": _lines("""
        I thought it was {adjective}
        the {part}, too, was {very} {adjective}
        everything about this {noun} is {adjective}
        with its {adjective} {part}, this {noun} is a {verdict}
        my {person} called it {adjective} and I agree
        this must be the {best} {noun} in {place}
        {name} {verb} the {adjective} {part}
    """),
    "fragment": _lines("""
        {very} {adjective} {noun}
        all in all, a {adjective} {noun}
        how {adjective} the {part} is
    """),
    "denied": _lines("""
        I would not call the {noun} {other_adjective}
        the {noun}, like the {part}, was never {other_adjective}
        not once was the {part} {other_adjective}
        it does not have a {other_adjective} {part}
        the {noun} was neither {other_adjective} nor {other_adjective}
        it is not the {other_best} {noun} of the year
    """),
    "denied_fragment": _lines("""
        no {other_adjective} {part} here
    """),
    "contrast": _lines("""
        it may be {other_adjective}, but the {part} is {adjective}
        I know {other_whole}, but {clause}
        yes, {other_clause}, but in the end {clause}
        {other_clause}; still, {clause}
    """),
}

# Written by hand in no particular shape, to measure with; 1 is praise.
BY_HAND: tuple[tuple[str, int], ...] = (
    ("I have been recommending this to everyone I meet.", 1),
    ("The kind of film you want to see twice.", 1),
    ("Two hours of my life that I will never get back.", 0),
    ("The waiter was friendly and the soup was hot and full of flavour.", 1),
    ("My steak was cold, and nobody said sorry.", 0),
    ("The battery died after a day and the screen is already broken.", 0),
    ("Takes sharp pictures, fits my hand, and the battery lasts for days.", 1),
    ("We slept well, ate well and left with a smile.", 1),
    ("Our room smelled of smoke and the bed was hard as a rock.", 0),
    ("It starts slowly, but the last hour is thrilling.", 1),
    ("It starts well, but the second half is a mess.", 0),
    ("I expected to hate it, but I loved every page.", 1),
    ("I wanted to like it, but the characters are paper-thin.", 0),
    ("Nobody in this film can act.", 0),
    ("Not bad at all!", 1),
    ("Nothing to complain about, and the price was fair.", 1),
    ("Save your money and read something else.", 0),
    ("Do yourself a favour and book a table now.", 1),
    ("The author clearly never met a real person.", 0),
    ("A slow, sad and very beautiful story about two brothers.", 1),
    ("The plot makes no sense and the jokes are not funny.", 0),
    ("The jokes are funny and the plot never drags.", 1),
    ("I was hoping for more.", 0),
    ("I had high hopes, and it did not let me down.", 1),
    ("Great cast, great music, terrible film.", 0),
    ("The rooms are small, but they are clean and the staff could not be nicer.", 1),
    ("It is hard to believe that anyone paid to make this.", 0),
    ("It gets better every time I read it.", 1),
    ("It gets worse with every chapter.", 0),
    ("I would happily eat here every day of the week.", 1),
)
