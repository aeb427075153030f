/* Counts the instructions that a guest executes, by where they lie: a plugin for QEMU's translator.
 *
 * QEMU translates the guest's code in straight blocks and lets a plugin add a constant to a counter each time a block
 * runs. There is a counter for every address at which a block starts; their sum is the number of instructions executed,
 * and each alone says where they went. The counters lie in a file that is mapped here and read by whoever measures,
 * while the guest runs.
 *
 *   -plugin instructions.so,counters=FILE      FILE must exist and be SLOTS * 16 bytes long
 *
 * - Exact with one processor: the additions are not atomic.
 * - A string instruction with a repeat prefix counts once for each of its iterations.
 * - A sleeping processor (HLT) executes nothing and counts nothing.
 *
 * Debian packages no header for plugins with QEMU 7.2, so what is used of its interface, version 1, is declared here.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
typedef void (*translated_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *counter, uint64_t value);
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

/* Open addressing. The last slot takes what has no place any more, so that the sum stays right. */
static struct slot *slots;

static struct slot *slot_of(uint64_t address)
{
    size_t at = (address * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SLOTS_LOG2);
    for (size_t tried = 0; tried < 64; tried++, at = (at + 1) % SLOTS) {
        if (slots[at].address == address) {
            return &slots[at];
        }
        if (slots[at].address == 0 && at != SLOTS - 1) {
            slots[at].address = address;
            return &slots[at];
        }
    }
    return &slots[SLOTS - 1];
}

/* A block was translated: from now on every run of it counts its instructions. */
static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    struct slot *slot = slot_of(qemu_plugin_tb_vaddr(block));
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &slot->instructions,
                                             qemu_plugin_tb_n_insns(block));
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
    static const char key[] = "counters=";
    int file;
    (void)info;
    if (argc != 1 || strncmp(argv[0], key, sizeof key - 1) != 0) {
        fprintf(stderr, "instructions: the argument is counters=FILE\n");
        return -1;
    }
    file = open(argv[0] + sizeof key - 1, O_RDWR);
    if (file < 0) {
        perror(argv[0]);
        return -1;
    }
    slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (slots == MAP_FAILED) {
        perror("mmap");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}
