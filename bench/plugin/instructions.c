/* A plugin for QEMU's translator. It counts the instructions that a guest executes, by address.
 *
 * QEMU translates the guest's code in basic blocks. A plugin can let QEMU add a constant to a counter
 * each time a block runs. This plugin has a counter for every address at which a block starts. A
 * counter has the number of instructions executed in blocks that start at its address. The sum of
 * all counters is the number of all executed instructions. The counters are in a file, which this
 * plugin maps into memory. The bench reads the file while the guest runs.
 *
 *   -plugin instructions.so,counters=FILE,cores=N
 *
 * FILE must exist, with N * SLOTS * 16 bytes: a table of counters for each core.
 *
 * - The counts are exact. With one core, QEMU itself adds to the counters, which is fast and not
 *   atomic. With several cores, each core adds to its own table.
 * - A string instruction with a repeat prefix counts once for each of its iterations.
 * - A sleeping processor (HLT) executes no instruction and counts none.
 *
 * Debian has no package with the header for plugins of QEMU 7.2. So this file declares the parts of
 * the interface, version 1, that it uses.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
typedef void (*translated_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed_callback)(unsigned int processor, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *counter, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed_callback, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;

/* One counter: the address of a block, and the number of instructions executed in blocks that start
 * there. A slot with address 0 is free. */
struct slot {
    uint64_t address;
    uint64_t instructions;
};

#define SLOTS_LOG2 17
#define SLOTS ((size_t)1 << SLOTS_LOG2)

/* The tables of all cores, one after the other. They are hash tables with open addressing. A block
 * has the same slot index in each table. The last slot counts all blocks that find no free slot, so
 * that the sum stays right. */
static struct slot *tables;
static unsigned int cores = 1;

/* Returns the slot index of a block. Several cores may translate blocks at the same time. The first
 * one that writes its address into a free slot gets the slot. */
static size_t place_of(uint64_t address)
{
    size_t at = (address * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SLOTS_LOG2);
    for (size_t tried = 0; tried < 64 && at != SLOTS - 1; tried++, at = (at + 1) % SLOTS) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&tables[at].address, &found, address, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            for (unsigned int core = 1; core < cores; core++) {
                tables[core * SLOTS + at].address = address;
            }
            return at;
        }
        if (found == address) {
            return at;
        }
    }
    return SLOTS - 1;
}

/* QEMU calls this before a block runs, if the guest has several cores. `data` holds the slot index
 * of the block and the number of its instructions. */
static void block_executed(unsigned int core, void *data)
{
    uintptr_t both = (uintptr_t)data;
    tables[core % cores * SLOTS + (both >> 16)].instructions += both & 0xFFFF;
}

/* QEMU calls this when it has translated a block. From now on every run of the block is counted. */
static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    size_t place = place_of(qemu_plugin_tb_vaddr(block));
    size_t count = qemu_plugin_tb_n_insns(block);
    (void)id;
    if (cores == 1) {
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &tables[place].instructions, count);
    } else {
        qemu_plugin_register_vcpu_tb_exec_cb(block, block_executed, QEMU_PLUGIN_CB_NO_REGS,
                                             (void *)(place << 16 | count));
    }
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    static const char file_key[] = "counters=", cores_key[] = "cores=";
    int file;
    (void)info;
    if (argc != 2 || strncmp(argv[0], file_key, sizeof file_key - 1) != 0
        || strncmp(argv[1], cores_key, sizeof cores_key - 1) != 0) {
        fprintf(stderr, "instructions: the arguments are counters=FILE and cores=N\n");
        return -1;
    }
    cores = (unsigned int)strtoul(argv[1] + sizeof cores_key - 1, NULL, 10);
    if (cores == 0) {
        fprintf(stderr, "instructions: a machine has a core\n");
        return -1;
    }
    file = open(argv[0] + sizeof file_key - 1, O_RDWR);
    if (file < 0) {
        perror(argv[0]);
        return -1;
    }
    tables = mmap(NULL, cores * SLOTS * sizeof *tables, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (tables == MAP_FAILED) {
        perror("mmap");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}
