//! The optional features. Without them this file holds nothing: `cargo test --features half,bytemuck`.

#[cfg(any(feature = "half", feature = "bytemuck"))]
mod support;

#[cfg(feature = "half")]
mod half_elements {
    use half::{bf16, f16};
    use vllm_cpp_sys::*;

    use super::support::CPU;

    #[test]
    fn conversions_keep_every_bit_pattern() {
        for bits in 0..=u16::MAX {
            assert_eq!(F16::from(f16::from_bits(bits)), F16(bits));
            assert_eq!(f16::from(F16(bits)).to_bits(), bits);
            assert_eq!(Bf16::from(bf16::from_bits(bits)), Bf16(bits));
            assert_eq!(bf16::from(Bf16(bits)).to_bits(), bits);
        }
    }

    #[test]
    fn both_crates_mean_the_same_numbers() {
        for bits in (0..=u16::MAX).filter(|&bits| !f16::from_bits(bits).is_nan()) {
            assert_eq!(f16::from_bits(bits).to_f32(), F16(bits).to_f32());
        }
        for bits in (0..=u16::MAX).filter(|&bits| !bf16::from_bits(bits).is_nan()) {
            assert_eq!(bf16::from_bits(bits).to_f32(), Bf16(bits).to_f32());
        }
        for value in [0.1f32, 257.0 / 256.0, 65519.0, 65520.0, 1e-8, -3.5, f32::INFINITY] {
            assert_eq!(F16::from(f16::from_f32(value)), F16::from_f32(value), "{value}");
            assert_eq!(Bf16::from(bf16::from_f32(value)), Bf16::from_f32(value), "{value}");
        }
    }

    #[test]
    fn they_are_reduced() {
        assert_eq!((<f16 as Scalar>::DTYPE, <bf16 as Scalar>::DTYPE), (DType::F16, DType::BF16));
        let comms = CommGroup::new(2).unwrap().into_comms().unwrap();
        let queue = Queue::new(CPU).unwrap();
        let values = [1.5f32, 2.25];
        let mut halves = values.map(|value| DeviceBuf::from_slice(CPU, &[f16::from_f32(value); 5]).unwrap());
        let mut brains = values.map(|value| DeviceBuf::from_slice(CPU, &[bf16::from_f32(value); 5]).unwrap());
        batch(|b| {
            for ((comm, half), brain) in comms.iter().zip(&mut halves).zip(&mut brains) {
                b.all_reduce_in_place(comm, &queue, half, ReduceOp::Sum)?;
                b.all_reduce_in_place(comm, &queue, brain, ReduceOp::Max)?;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(halves[0].to_vec().unwrap(), [f16::from_f32(3.75); 5]);
        assert_eq!(brains[1].to_vec().unwrap(), [bf16::from_f32(2.25); 5]);
    }
}

#[cfg(feature = "bytemuck")]
mod plain_elements {
    use bytemuck::{Pod, TransparentWrapper, Zeroable};
    use vllm_cpp_sys::*;

    use super::support::CPU;

    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Token {
        id: u32,
        score: f32,
        tail: [u8; 4],
    }

    // SAFETY: four-byte parts without padding, any bits.
    unsafe impl Zeroable for Token {}
    // SAFETY: as above.
    unsafe impl Pod for Token {}

    fn token(id: u32) -> Token {
        Token { id, score: id as f32 / 2.0, tail: [id as u8; 4] }
    }

    #[test]
    fn pod_types_go_through_buffers_tasks_and_views() {
        let queue = Queue::new_async(CPU).unwrap();
        let tokens: Vec<Token> = (0..9).map(token).collect();
        let mut buffer = DeviceBuf::from_slice(CPU, Plain::wrap_slice(&tokens)).unwrap();
        queue
            .host_task((&mut buffer,), |(tokens,)| {
                tokens.iter_mut().for_each(|token| token.id += 1);
                Ok(())
            })
            .unwrap();
        let view = buffer.read().unwrap();
        let back: &[Token] = Plain::peel_slice(&view);
        assert_eq!(back[8], Token { id: 9, ..token(8) });
        let bytes: &[u8] = bytemuck::cast_slice(&view);
        assert_eq!(bytes.len(), 9 * 12);
        assert_eq!(bytes[12..16], 2u32.to_ne_bytes());
    }

    #[test]
    fn views_of_half_types_can_be_cast() {
        let buffer = DeviceBuf::from_slice(CPU, &[F16(0x3C00), F16(1)]).unwrap();
        let view = buffer.read().unwrap();
        let bits: &[u16] = bytemuck::cast_slice(&view);
        assert_eq!(bits, [0x3C00, 1]);
        let brains: &[Bf16] = bytemuck::cast_slice(bits);
        assert_eq!(brains[1], Bf16(1));
    }

    #[test]
    fn slices_are_cast_where_size_and_place_allow_it() {
        let mut bytes = DeviceBuf::<u8>::zeroed(CPU, 24).unwrap();
        bytes.as_slice_mut().cast::<Plain<Token>>().unwrap().copy_from_slice(&[Plain(token(3)), Plain(token(4))]).unwrap();
        assert_eq!(bytes.slice(12..).cast::<Plain<Token>>().unwrap().to_vec().unwrap(), [Plain(token(4))]);
        let refused = |slice: Slice<'_, u8>| slice.cast::<Plain<Token>>().unwrap_err();
        assert_eq!(refused(bytes.slice(..20)).status, Status::InvalidArgument);
        assert!(refused(bytes.slice(..20)).message.contains("20 bytes are no number of elements of 12 bytes"));
        assert!(refused(bytes.slice(2..14)).message.contains("multiple of 4 bytes"));
        assert_eq!(bytes.as_slice().cast::<Plain<()>>().unwrap_err().status, Status::InvalidArgument);
        assert!(bytes.slice(4..4).cast::<Plain<Token>>().unwrap().is_empty());
    }
}
