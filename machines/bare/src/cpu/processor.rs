//! The processor's features. They are read only once, because `cpuid` traps in a virtual machine.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

/// The features of the processor that the machine uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    /// The processor's number among the interrupt controllers (APIC id).
    pub(crate) apic_id: u32,
    pub(crate) x2apic: bool,
    pub(crate) tsc_deadline: bool,
    pub(crate) rdrand: bool,
    pub(crate) rdseed: bool,
    pub(crate) gigabyte_pages: bool,
    /// Whether the time-stamp counter always runs at one rate.
    pub(crate) invariant_tsc: bool,
    /// The time-stamp counter's rate in hertz, if the processor or the hypervisor reports it.
    pub(crate) tsc_hertz: Option<u64>,
    /// Whether the hypervisor's local interrupt controller counts nanoseconds, as QEMU's and KVM's
    /// do.
    pub(crate) apic_counts_nanoseconds: bool,
    /// The vector state that was enabled: bits of XCR0, or zero if the processor has only SSE.
    pub(crate) vector_state: u64,
}

const LEAF_FEATURES: u32 = 1;
const LEAF_FEATURES_MORE: u32 = 7;
const LEAF_STATE: u32 = 0xD;
const LEAF_TSC: u32 = 0x15;
const LEAF_FREQUENCY: u32 = 0x16;
const LEAF_HYPERVISOR: u32 = 0x4000_0000;
const LEAF_HYPERVISOR_TIMING: u32 = 0x4000_0010;
const LEAF_EXTENDED: u32 = 0x8000_0000;

/// XCR0: x87 and SSE, AVX, and the three parts of AVX-512, which are enabled together.
const STATE_SSE: u64 = 0b11;
const STATE_AVX: u64 = 0b100;
const STATE_AVX512: u64 = 0b1110_0000;

impl Processor {
    /// Detects the features, and enables the vector state of the processor.
    pub(crate) fn detect() -> Processor {
        let leaf_max = __cpuid(0).eax;
        let features = __cpuid(LEAF_FEATURES);
        let more = leaf(leaf_max, LEAF_FEATURES_MORE);
        let extended_max = __cpuid(LEAF_EXTENDED).eax;
        let extended = leaf(extended_max, LEAF_EXTENDED + 1);
        let power = leaf(extended_max, LEAF_EXTENDED + 7);
        let has_hypervisor = has_bit(features.ecx, 31);
        Processor {
            apic_id: features.ebx >> 24,
            x2apic: has_bit(features.ecx, 21),
            tsc_deadline: has_bit(features.ecx, 24),
            rdrand: has_bit(features.ecx, 30),
            rdseed: has_bit(more.ebx, 18),
            gigabyte_pages: has_bit(extended.edx, 26),
            invariant_tsc: has_bit(power.edx, 8),
            tsc_hertz: tsc_hertz(leaf_max, has_hypervisor),
            apic_counts_nanoseconds: has_hypervisor && has_qemu_or_kvm(),
            vector_state: if has_bit(features.ecx, 26) {
                enable_vector_state(has_bit(features.ecx, 28))
            } else {
                0
            },
        }
    }
}

/// The contents of `leaf`, or zeros if the processor does not have it.
fn leaf(leaf_max: u32, leaf: u32) -> CpuidResult {
    if leaf <= leaf_max {
        __cpuid_count(leaf, 0)
    } else {
        CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
    }
}

const fn has_bit(register: u32, number: u32) -> bool {
    register >> number & 1 == 1
}

/// The rate of the time-stamp counter from CPUID leaves 15h and 16h (Intel SDM volume 2), or else
/// from the timing leaf of the hypervisor. VMware defined that leaf, and QEMU and others have it
/// too.
fn tsc_hertz(leaf_max: u32, has_hypervisor: bool) -> Option<u64> {
    let ratio = leaf(leaf_max, LEAF_TSC);
    if ratio.eax != 0 && ratio.ebx != 0 {
        if ratio.ecx != 0 {
            return Some(u64::from(ratio.ecx) * u64::from(ratio.ebx) / u64::from(ratio.eax));
        }
        let megahertz = leaf(leaf_max, LEAF_FREQUENCY).eax & 0xFFFF;
        if megahertz != 0 && !has_hypervisor {
            return Some(u64::from(megahertz) * 1_000_000);
        }
    }
    if has_hypervisor {
        let leaf_max = __cpuid(LEAF_HYPERVISOR).eax;
        // On a hypervisor without these leaves, `leaf_max` has the contents of another leaf. The
        // limit of 0x4000_0100 excludes such values.
        if (LEAF_HYPERVISOR_TIMING..LEAF_HYPERVISOR + 0x100).contains(&leaf_max) {
            let kilohertz = __cpuid(LEAF_HYPERVISOR_TIMING).eax;
            return (kilohertz != 0).then_some(u64::from(kilohertz) * 1_000);
        }
    }
    None
}

fn has_qemu_or_kvm() -> bool {
    let id = __cpuid(LEAF_HYPERVISOR);
    let signature = [id.ebx, id.ecx, id.edx].map(u32::to_le_bytes);
    signature == [*b"TCGT", *b"CGTC", *b"GTCG"] || signature == [*b"KVMK", *b"VMKV", *b"M\0\0\0"]
}

/// Enables SSE, AVX and AVX-512 as far as the processor has them. Returns XCR0. The image has no
/// context switches, so more state costs nothing.
fn enable_vector_state(has_avx: bool) -> u64 {
    const CR4_OSXSAVE: u64 = 1 << 18;
    // SAFETY: 1. the caller saw XSAVE in CPUID, so the bit may be set; 2. no earlier code relies on
    // the bit being clear.
    unsafe {
        asm!("mov {old}, cr4", "or {old}, {bit}", "mov cr4, {old}", old = out(reg) _, bit = in(reg) CR4_OSXSAVE, options(nostack));
    }
    let state = __cpuid_count(LEAF_STATE, 0);
    let offered = u64::from(state.eax) | u64::from(state.edx) << 32;
    let mut wanted = STATE_SSE;
    if has_avx && offered & STATE_AVX != 0 {
        wanted |= STATE_AVX;
        if offered & STATE_AVX512 == STATE_AVX512 {
            wanted |= STATE_AVX512;
        }
    }
    // SAFETY: 1. OSXSAVE is set; 2. the processor offers each bit; 3. AVX is enabled only with SSE,
    // and AVX-512 only with all of its parts and AVX.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") wanted as u32, in("edx") (wanted >> 32) as u32, options(nomem, nostack));
    }
    wanted
}
