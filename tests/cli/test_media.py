"""Pictures with a text, and sounds, on the command line."""

import json
import wave

import numpy as np
import pytest
import tiny
from subjects import picture

RATE = 16000


def saved(parts, folder):
    model, processor = parts
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def write_sound(path, rate=RATE, channels=1, width=2):
    tone = np.sin(np.arange(RATE // 4) / 5)[:, None].repeat(channels, 1)
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(rate)
        sound.writeframes((tone * 2 ** (8 * width - 2)).astype(f"<i{width}").tobytes())
    return path


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    parts = tiny.wave_subject("Wav2Vec2", "ForSequenceClassification")
    return saved(parts, tmp_path_factory.mktemp("wav2vec2"))


def test_pictures_and_a_prompt(run, tmp_path):
    model, processor = tiny.llava_subject()
    processor.chat_template = (
        "{% for m in messages %}{% for p in m.content %}"
        "{{ '<image>' if p.type == 'image' else p.text }}{% endfor %}{% endfor %}"
    )
    folder = saved((model, processor), tmp_path / "llava")
    for seed in (0, 1):
        picture(seed).save(tmp_path / f"{seed}.png")
    seen = ["--image", tmp_path / "0.png", "--image", tmp_path / "1.png", "the film"]
    asked = ["--generate", 2, "--method", "raw_attention", "--json"]
    status, out, err = run("explain", "--model", folder, *seen, *asked)
    assert status == 0, err
    found = json.loads(out)
    assert len(found["outputs"]) == 2
    assert found["tokens"]["grids"] == {"image 1": [4, 4], "image 2": [4, 4]}
    parts = [{"type": "image", "image": "0.png"}, {"type": "text", "text": "the film"}]
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps([{"role": "user", "content": parts}]))
    asked = ["--messages", talk, "--method", "raw_attention", "--json"]
    status, out, err = run("explain", "--model", folder, *asked)
    assert status == 0, err
    found = json.loads(out)["tokens"]
    assert found["sources"] == {"1 user": "the film"} and found["grid"] == [4, 4]


@pytest.mark.parametrize(("channels", "width"), [(1, 2), (2, 4)])
def test_a_sound(run, tmp_path, listener, channels, width):
    path = write_sound(tmp_path / "tone.wav", channels=channels, width=width)
    asked = ["--audio", path, "--method", "gradient", "--json"]
    status, out, err = run("explain", "--model", listener, *asked)
    assert status == 0, err
    found = json.loads(out)["tokens"]
    assert found["grids"]["sound"] == [1, len(found["texts"])] and found["texts"][0] == "0.00 s"


@pytest.mark.parametrize(
    ("sound", "message"),
    [
        ({"rate": 8000}, "has 8000 samples a second, and this model reads 16000"),
        ({"width": 1}, "has 8 bits a sample: 16 or 32 can be read"),
        (None, "cannot be read as WAV"),
    ],
)
def test_a_sound_that_cannot_be_read_is_told(run, tmp_path, listener, sound, message):
    path = tmp_path / "tone.wav"
    if sound is None:
        path.write_bytes(b"OggS")
    else:
        write_sound(path, **sound)
    status, _, err = run("explain", "--model", listener, "--audio", path)
    assert status == 2 and message in " ".join(err.split()) and "Traceback" not in err
