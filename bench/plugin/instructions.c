/* Counts the instructions that a guest executes, by where they lie: a plugin for QEMU's translator.
 *
 * QEMU translates the guest's code in straight blocks and lets a plugin add a constant to a counter each time a block
 * runs. There is a counter for every address at which a block starts; their sum is the number of instructions executed,
 * and each alone says where they went. The counters lie in a file that is mapped here and read by whoever measures,
 * while the guest runs.
 *
 *   -plugin instructions.so,counters=FILE,cores=N      FILE must exist and be N * SLOTS * 16 bytes long: a table for each core
 *
 * - Exact: with one processor QEMU adds by itself, which is fast and not atomic; with several each adds to a table of its own.
 * - A string instruction with a repeat prefix counts once for each of its iterations.
 * - A sleeping processor (HLT) executes nothing and counts nothing.
 *
 * Debian packages no header for plugins with QEMU 7.2, so what is used of its interface, version 1, is declared here.
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

/* One counter: the address of a block, and the instructions executed in blocks that start there. Address 0: free. */
struct slot {
    uint64_t address;
    uint64_t instructions;
};

#define SLOTS_LOG2 17
#define SLOTS ((size_t)1 << SLOTS_LOG2)

/* A table for each core, one after the other; a block has the same place in each. Open addressing. The last slot takes what has no place
 * any more, so that the sum stays right. */
static struct slot *tables;
static unsigned int cores = 1;

/* Several processors may translate at the same time: the first one takes the slot. */
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

/* A block is about to run; where its counter is and how many instructions it has is in `data`. */
static void block_executed(unsigned int core, void *data)
{
    uintptr_t both = (uintptr_t)data;
    tables[core % cores * SLOTS + (both >> 16)].instructions += both & 0xFFFF;
}

/* A block was translated: from now on every run of it counts its instructions. */
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
