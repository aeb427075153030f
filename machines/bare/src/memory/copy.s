/* memcpy, memmove, memset, memcmp, bcmp and strlen: the hottest code of the image. They are in
   assembly, because a compiler may turn a loop into a call of the function itself.

   - Up to 64 bytes are copied without a loop, by moves from both ends, which may overlap. All loads
     come before the first store, so memmove uses these paths too.
   - Larger sizes are copied in a loop, 64 bytes per iteration through SSE registers. The last 64
     bytes are loaded before the loop and stored after it.
   - No `rep movsb`: on an emulated processor it costs 12 to 130 us for 4 KiB. On a real
     processor its start-up costs more than all copies of a mail session. */

.section .text.memory, "ax", @progbits
.p2align 4
.global barepost_memcpy
.global barepost_memmove
barepost_memcpy:
    mov rax, rdi
    cmp rdx, 16
    jb copy_below_16
    cmp rdx, 32
    ja copy_above_32
    movups xmm0, [rsi]
    movups xmm1, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm1
    ret
copy_above_32:
    cmp rdx, 64
    ja copy_forward
copy_33_to_64:
    movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + rdx - 32]
    movups xmm3, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + rdx - 32], xmm2
    movups [rdi + rdx - 16], xmm3
    ret

/* rdx > 64, and the destination does not begin inside the source. The last 64 bytes are in
   registers before the first store. rcx runs from -(rdx - 64 rounded up) towards zero. */
.p2align 4
copy_forward:
    movups xmm4, [rsi + rdx - 64]
    movups xmm5, [rsi + rdx - 48]
    movups xmm6, [rsi + rdx - 32]
    movups xmm7, [rsi + rdx - 16]
    lea rcx, [rdx - 1]
    and rcx, -64                    /* whole iterations before the end */
    add rsi, rcx
    lea r8, [rdi + rcx]
    neg rcx
.p2align 4
1:  movups xmm0, [rsi + rcx]
    movups xmm1, [rsi + rcx + 16]
    movups xmm2, [rsi + rcx + 32]
    movups xmm3, [rsi + rcx + 48]
    movups [r8 + rcx], xmm0
    movups [r8 + rcx + 16], xmm1
    movups [r8 + rcx + 32], xmm2
    movups [r8 + rcx + 48], xmm3
    add rcx, 64
    jnz 1b
    movups [rdi + rdx - 64], xmm4
    movups [rdi + rdx - 48], xmm5
    movups [rdi + rdx - 32], xmm6
    movups [rdi + rdx - 16], xmm7
    ret

copy_below_16:
    cmp edx, 8
    jb 1f
    mov rcx, [rsi]
    mov r8, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], r8
    ret
1:  cmp edx, 4
    jb 2f
    mov ecx, [rsi]
    mov r8d, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], r8d
    ret
2:  test edx, edx
    jz 3f
    mov r9d, edx
    shr r9d, 1                      /* the middle byte of 1, 2, 3 bytes is at 0, 1, 1 */
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi + rdx - 1]
    movzx r10d, byte ptr [rsi + r9]
    mov [rdi], cl
    mov [rdi + r9], r10b
    mov [rdi + rdx - 1], r8b
3:  ret

.p2align 4
barepost_memmove:
    mov rax, rdi
    cmp rdx, 16
    jb copy_below_16
    cmp rdx, 32
    ja 1f
    movups xmm0, [rsi]
    movups xmm1, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm1
    ret
1:  cmp rdx, 64
    jbe copy_33_to_64
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jae copy_forward

/* The destination begins inside the source: copies from the end down. The first 64 bytes are in
   registers before the first store. */
    movups xmm4, [rsi]
    movups xmm5, [rsi + 16]
    movups xmm6, [rsi + 32]
    movups xmm7, [rsi + 48]
    lea rcx, [rdx - 1]
    and rcx, -64
    sub rdx, rcx
    add rsi, rdx
    lea r8, [rdi + rdx]
.p2align 4
2:  movups xmm0, [rsi + rcx - 64]
    movups xmm1, [rsi + rcx - 48]
    movups xmm2, [rsi + rcx - 32]
    movups xmm3, [rsi + rcx - 16]
    movups [r8 + rcx - 64], xmm0
    movups [r8 + rcx - 48], xmm1
    movups [r8 + rcx - 32], xmm2
    movups [r8 + rcx - 16], xmm3
    sub rcx, 64
    jnz 2b
    movups [rdi], xmm4
    movups [rdi + 16], xmm5
    movups [rdi + 32], xmm6
    movups [rdi + 48], xmm7
    ret

.p2align 4
.global barepost_memset
barepost_memset:
    mov rax, rdi
    movzx esi, sil
    mov rcx, 0x0101010101010101
    imul rcx, rsi
    cmp rdx, 16
    jb 3f
    movq xmm0, rcx
    punpcklqdq xmm0, xmm0
    cmp rdx, 64
    ja 1f
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm0
    cmp rdx, 32
    jbe 2f
    movups [rdi + 16], xmm0
    movups [rdi + rdx - 32], xmm0
2:  ret
1:  lea rcx, [rdx - 1]
    and rcx, -64
    lea r8, [rdi + rcx]
    neg rcx
.p2align 4
1:  movups [r8 + rcx], xmm0
    movups [r8 + rcx + 16], xmm0
    movups [r8 + rcx + 32], xmm0
    movups [r8 + rcx + 48], xmm0
    add rcx, 64
    jnz 1b
    movups [rdi + rdx - 64], xmm0
    movups [rdi + rdx - 48], xmm0
    movups [rdi + rdx - 32], xmm0
    movups [rdi + rdx - 16], xmm0
    ret
3:  cmp edx, 8
    jb 4f
    mov [rdi], rcx
    mov [rdi + rdx - 8], rcx
    ret
4:  cmp edx, 4
    jb 5f
    mov [rdi], ecx
    mov [rdi + rdx - 4], ecx
    ret
5:  test edx, edx
    jz 6f
    mov [rdi], cl
    mov [rdi + rdx - 1], cl
    shr edx, 1
    mov [rdi + rdx], cl
6:  ret

.p2align 4
.global barepost_memcmp
barepost_memcmp:
    cmp rdx, 16
    jb 3f
    xor ecx, ecx
    sub rdx, 16                     /* the offset of the last 16 bytes */
1:  movdqu xmm0, [rdi + rcx]
    movdqu xmm1, [rsi + rcx]
    pcmpeqb xmm0, xmm1
    pmovmskb eax, xmm0
    xor eax, 0xffff
    jnz 2f
    cmp rcx, rdx
    jae 7f                          /* eax is 0: equal */
    add rcx, 16
    cmp rcx, rdx
    cmova rcx, rdx
    jmp 1b
2:  bsf eax, eax
    add rcx, rax
    movzx eax, byte ptr [rdi + rcx]
    movzx edx, byte ptr [rsi + rcx]
    sub eax, edx
7:  ret
3:  cmp edx, 8
    jb 4f
    mov rax, [rdi]
    mov rcx, [rsi]
    cmp rax, rcx
    jne 8f
    mov rax, [rdi + rdx - 8]
    mov rcx, [rsi + rdx - 8]
    cmp rax, rcx
    jne 8f
    xor eax, eax
    ret
8:  bswap rax
    bswap rcx
9:  cmp rax, rcx
    sbb eax, eax
    or eax, 1
    ret
4:  cmp edx, 4
    jb 5f
    mov eax, [rdi]
    mov ecx, [rsi]
    cmp eax, ecx
    jne 6f
    mov eax, [rdi + rdx - 4]
    mov ecx, [rsi + rdx - 4]
    cmp eax, ecx
    jne 6f
    xor eax, eax
    ret
6:  bswap eax
    bswap ecx
    jmp 9b
5:  xor eax, eax
    test edx, edx
    jz 7b
    xor ecx, ecx
6:  movzx eax, byte ptr [rdi + rcx]
    movzx r8d, byte ptr [rsi + rcx]
    sub eax, r8d
    jnz 7b
    inc ecx
    cmp ecx, edx
    jb 6b
    ret

.p2align 4
.global barepost_strlen
barepost_strlen:
    xor eax, eax
1:  cmp byte ptr [rdi + rax], 0
    je 2f
    inc rax
    jmp 1b
2:  ret
