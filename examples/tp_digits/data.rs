//! The handwritten digits and the trained network, compiled into the program. Formats: `examples/data/README.md`.

pub const PIXELS: usize = 64;
pub const CLASSES: usize = 10;

static DIGITS: &[u8] = include_bytes!("../data/digits.bin");
static NETWORK: &[u8] = include_bytes!("../data/mlp.bin");

/// The images, and what they show.
pub struct Digits {
    /// `[len][PIXELS]`, from 0.0 (paper) to 1.0 (ink).
    pub pixels: Vec<f32>,
    labels: &'static [u8],
    is_test: &'static [u8],
}

impl Digits {
    pub fn load() -> Digits {
        let mut file = Reader::new(DIGITS, b"VTDIGIT1");
        let count = file.u32();
        assert_eq!(file.u32(), PIXELS);
        let pixels = file.bytes(count * PIXELS).iter().map(|&ink| f32::from(ink) / 16.0).collect();
        Digits { pixels, labels: file.bytes(count), is_test: file.bytes(count) }
    }

    /// The share of `classes` that is right, over all images.
    pub fn accuracy(&self, classes: &[u8]) -> f64 {
        share_equal(self.labels.iter().zip(classes))
    }

    /// The share that is right of the third of the images that the network wasn't trained on.
    pub fn test_accuracy(&self, classes: &[u8]) -> f64 {
        let answers = self.labels.iter().zip(classes).zip(self.is_test);
        share_equal(answers.filter(|(_, is_test)| **is_test == 1).map(|(answer, _)| answer))
    }
}

fn share_equal<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> f64 {
    let (mut equal, mut count) = (0, 0);
    for (a, b) in pairs {
        equal += usize::from(a == b);
        count += 1;
    }
    equal as f64 / count as f64
}

/// One layer of the whole network: `output = weights * input + bias`.
pub struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    /// `[outputs][inputs]`
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Loads the layers of the network.
pub fn network() -> Vec<Layer> {
    let mut file = Reader::new(NETWORK, b"VTMLPF32");
    let layers = file.u32();
    let sizes: Vec<usize> = (0..=layers).map(|_| file.u32()).collect();
    let layer = |pair: &[usize]| {
        let (inputs, outputs) = (pair[0], pair[1]);
        Layer { inputs, outputs, weights: file.floats(inputs * outputs), bias: file.floats(outputs) }
    };
    sizes.windows(2).map(layer).collect()
}

/// Takes little-endian values off the front of a file. The files are part of the program, so a wrong one is a defect.
struct Reader(&'static [u8]);

impl Reader {
    fn new(file: &'static [u8], magic: &[u8]) -> Reader {
        let mut reader = Reader(file);
        assert_eq!(reader.bytes(magic.len()), magic);
        reader
    }

    fn bytes(&mut self, count: usize) -> &'static [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> usize {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap()) as usize
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        self.bytes(count * 4).chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }
}
