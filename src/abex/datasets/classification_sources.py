"""Where the classification sets come from: files, addresses, checksums, citations."""

from __future__ import annotations

from abex.datasets import classification as sets
from abex.datasets.catalogue import Entry, Part, Remote

UCI = "https://archive.ics.uci.edu"


def _mnist(name: str, packed: str, sha256: str) -> Part:
    hosts = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    )
    return Part(name, sha256, (Remote(f"{name}.gz", tuple(f"{host}{name}.gz" for host in hosts), packed),))


def _usps(name: str) -> Part:
    hosts = ("https://hastie.su.domains", "https://web.stanford.edu/~hastie")
    urls = tuple(f"{host}/ElemStatLearn/datasets/{name}.gz" for host in hosts)
    return Part(name, None, (Remote(f"{name}.gz", urls),))


def _uci(name: str, folder: str, archive: str, sha256: str, packing: str = "") -> Part:
    loose = f"{UCI}/ml/machine-learning-databases/{folder}/{name.replace('+', '%2B')}{packing}"
    packed = f"{UCI}/static/public/{archive}"
    file = packed.rsplit("/", 1)[1]
    # upstream's plain files have the checksum of their content; the bytes of its packed ones are not known
    known = sha256 if not packing else None
    return Part(name, sha256, (Remote(f"{name}{packing}", (loose,), known), Remote(file, (packed,))))


ENTRIES = (
    Entry(
        name="mnist",
        kind="classes",
        folder="mnist",
        parts=(
            _mnist(
                "train-images-idx3-ubyte",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            _mnist(
                "train-labels-idx1-ubyte",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            _mnist(
                "t10k-images-idx3-ubyte",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            _mnist(
                "t10k-labels-idx1-ubyte",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
        read=sets.read_mnist,
        build=sets.build,
        checksum="ea108faaf69d262fdfe6d205d9da55ccdcd172cbffd0d9620f8459327db611f0",
        rows="60,000 + 10,000",
        features="784",
        classes="10",
        description="Handwritten digits, 28 x 28 grey levels 0..255; the official split.",
        brief="LeCun et al. 1998",
        citation='Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits", 1998; '
        "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Proceedings of the IEEE 86(11), 1998.",
        licence="CC BY-SA 3.0",
    ),
    Entry(
        name="usps",
        kind="classes",
        folder="usps",
        parts=(_usps("zip.train"), _usps("zip.test")),
        read=sets.read_usps,
        build=sets.build,
        checksum="df0d73e085267784418de52a78b3a918d1f31f282ce489ffad4d6794d8b6cfe3",
        rows="7,291 + 2,007",
        features="256",
        classes="10",
        description="Digits of ZIP codes on envelopes, 16 x 16 grey levels in [-1, 1]; the book's split.",
        brief="Hastie et al. 2009",
        citation='T. Hastie, R. Tibshirani, J. Friedman, "The Elements of Statistical Learning", "ZIP code"; '
        "Y. LeCun et al., Handwritten digit recognition with a back-propagation network, NIPS 1989.",
        licence="none stated",
    ),
    Entry(
        name="letter",
        kind="classes",
        folder="letter",
        parts=(
            _uci(
                "letter-recognition.data",
                "letter-recognition",
                "59/letter+recognition.zip",
                "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
            ),
        ),
        read=sets.read_letter,
        build=sets.build,
        checksum="996bb00db48372d271a846bffab018ffed44d7fc430373cda447730a55b0f832",
        rows="16,000 + 4,000",
        features="16",
        classes="26",
        description="Statistical moments and edge counts (0..15) of distorted capital letters in 20 fonts; "
        "the first 16,000 rows are for training, as in the paper that introduced them.",
        brief="Frey, Slate 1991",
        citation="D. Slate, Letter Recognition, UCI Machine Learning Repository, 1991, doi:10.24432/C5ZP40; "
        "P. W. Frey, D. J. Slate, Machine Learning 6(2), 1991.",
        licence="CC BY 4.0",
    ),
    Entry(
        name="pendigits",
        kind="classes",
        folder="pendigits",
        parts=(
            _uci(
                "pendigits.tra",
                "pendigits",
                "81/pen+based+recognition+of+handwritten+digits.zip",
                "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3",
            ),
            _uci(
                "pendigits.tes",
                "pendigits",
                "81/pen+based+recognition+of+handwritten+digits.zip",
                "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015",
            ),
        ),
        read=sets.read_pendigits,
        build=sets.build,
        checksum="05c671e5d36c60e3e026d54ff97372031eed357b75b250322cf8acaec488776a",
        rows="7,494 + 3,498",
        features="16",
        classes="10",
        description="Digits written on a tablet: eight points (x, y) along the pen's way, 0..100; "
        "30 writers for training, 14 others for the test.",
        brief="Alpaydin, Alimoglu 1996",
        citation="E. Alpaydin, F. Alimoglu, Pen-Based Recognition of Handwritten Digits, UCI Machine "
        "Learning Repository, 1996, doi:10.24432/C5MG6K.",
        licence="CC BY 4.0",
    ),
    Entry(
        name="isolet",
        kind="classes",
        folder="isolet",
        parts=(
            _uci(
                "isolet1+2+3+4.data",
                "isolet",
                "54/isolet.zip",
                "aa935cc98ec22ee689aa5b2ddf1fdce074692f7016f0255f0982df133ccbab38",
                packing=".Z",
            ),
            _uci(
                "isolet5.data",
                "isolet",
                "54/isolet.zip",
                "d3409bb424f2bf9a68d0d07d4824b1d776b430d2e49c1207f00502a9e2f2a899",
                packing=".Z",
            ),
        ),
        read=sets.read_isolet,
        build=sets.build,
        checksum="c5ea47b0bdb30f6bdb189f4d6492a3f0b3d54be00cded9b763f8cd4413d759a0",
        rows="6,238 + 1,559",
        features="617",
        classes="26",
        description="Names of letters spoken by 150 people, acoustic features in [-1, 1]; speakers 1 to 120 "
        "(isolet1 to 4) for training, the other 30 (isolet5) for the test.",
        brief="Cole, Fanty 1991",
        citation="R. Cole, M. Fanty, ISOLET, UCI Machine Learning Repository, 1991, doi:10.24432/C51G69; "
        "M. Fanty, R. Cole, Spoken letter recognition, NIPS 3, 1991.",
        licence="CC BY 4.0",
    ),
    Entry(
        name="digits",
        kind="classes",
        folder="digits",
        parts=(),
        read=sets.read_digits,
        build=sets.build,
        checksum="36041be482bb5c25dbfd447c8d6ce29c935aa081e383550964e8cae3e44fd431",
        rows="1,200 + 597",
        features="64",
        classes="10",
        description="Handwritten digits, 8 x 8 counts 0..16, part of scikit-learn; a fixed random split.",
        brief="Alpaydin, Kaynak 1998",
        citation="E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning "
        "Repository, 1998, doi:10.24432/C50P49 (its test part).",
        licence="CC BY 4.0",
    ),
)
