//! Tests of memory, vector state and randomness.

use super::{Outcome, Test, ensure};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bare::BareMachine;
use core::hint::black_box;
use machine::{Entropy, Machine};

pub(super) const TESTS: [Test; 4] = [
    ("most of the memory is free for the engine", memory_is_there),
    ("allocated memory keeps its contents and is freed again", memory_is_kept),
    ("floating point and wide copies are exact", vectors_are_exact),
    ("random bytes are balanced and never the same, across reseeding", random_is_random),
];

fn memory_is_there(machine: &mut BareMachine) -> Outcome {
    let memory = machine.memory();
    ensure(memory.total > 64 << 20, "less than 64 MiB")?;
    ensure(memory.free > memory.total / 10 * 9, "more than a tenth is in use already")
}

fn memory_is_kept(machine: &mut BareMachine) -> Outcome {
    let before = machine.memory().free;
    let long = vec![0x5A_u8; 32 << 20];
    let mut short: Vec<Box<[u8]>> = Vec::new();
    for size in 1..2000_usize {
        short.push(vec![size as u8; size].into_boxed_slice());
    }
    let is_kept = short.iter().all(|block| block.iter().all(|&byte| byte == block.len() as u8));
    ensure(is_kept, "a block lost its contents")?;
    ensure(black_box(&long).iter().all(|&byte| byte == 0x5A), "a run lost its contents")?;
    drop((long, short));
    ensure(before - machine.memory().free < 16 << 20, "the run was not freed")
}

fn vectors_are_exact(_: &mut BareMachine) -> Outcome {
    let source: Vec<u8> = (0..100_000_u32).map(|i| (i * i / 7) as u8).collect();
    let copy = black_box(source.clone());
    ensure(copy == source, "a copy differs")?;
    ensure(black_box(7.5_f64) * black_box(2.0) == 15.0, "floating point is wrong")?;
    let moved = [black_box([1_u64, 2, 3, 4]), black_box([5, 6, 7, 8])].concat();
    ensure(moved == [1, 2, 3, 4, 5, 6, 7, 8], "a wide move is wrong")
}

fn random_is_random(machine: &mut BareMachine) -> Outcome {
    const BYTES: usize = 200_000;
    let mut one = vec![0_u8; BYTES];
    machine.random(&mut one);
    let ones: u32 = one.iter().map(|byte| byte.count_ones()).sum();
    ensure(ones.abs_diff(4 * BYTES as u32) < 4000, "more ones than zeros, or fewer")?;
    let mut other = vec![0_u8; BYTES];
    machine.random(&mut other);
    let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
    ensure(same.abs_diff(BYTES / 256) < 300, "two readings are alike")
}
