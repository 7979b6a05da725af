//go:build !purego && !race && !msan && !asan

#include "textflag.h"
#include "words_amd64.h"

// What fold_amd64.s does in four registers of 512 bits is done here in eight of 256, with
// instructions that processors without AVX-512 have. A register has two lanes.

// FOLD replaces the lanes of Y by the sum of their two products with K. T is overwritten.
#define FOLD(K, Y, T) \
	VPCLMULQDQ $0x00, K, Y, T \
	VPCLMULQDQ $0x11, K, Y, Y \
	VPXOR T, Y, Y

// NEXT folds Y over 256 octets and adds those at an offset from SI.
#define NEXT(offset, Y) \
	FOLD(Y15, Y, Y8)            \
	VPXOR offset(SI), Y, Y

// COPY is NEXT, and stores what it adds: it loads it once.
#define COPY(offset, Y) \
	VMOVDQU offset(SI), Y9      \
	FOLD(Y15, Y, Y8)            \
	VMOVDQU Y9, offset(DI)      \
	VPXOR Y9, Y, Y

// TAKE loads the first octets, and stores them.
#define TAKE(offset, Y) \
	VMOVDQU offset(SI), Y       \
	VMOVDQU Y, offset(DI)

// MERGE adds up the eight registers in Y7, the last 32 octets: each half of them 128, 64
// and 32 octets further on.
#define MERGE \
	VBROADCASTI128 ·powers+32(SB), Y12 \
	VBROADCASTI128 ·powers+48(SB), Y13 \
	FOLD(Y12, Y0, Y8)                  \
	FOLD(Y12, Y1, Y9)                  \
	FOLD(Y12, Y2, Y10)                 \
	FOLD(Y12, Y3, Y11)                 \
	VPXOR Y0, Y4, Y4                   \
	VPXOR Y1, Y5, Y5                   \
	VPXOR Y2, Y6, Y6                   \
	VPXOR Y3, Y7, Y7                   \
	FOLD(Y13, Y4, Y8)                  \
	FOLD(Y13, Y5, Y9)                  \
	VPXOR Y4, Y6, Y6                   \
	VPXOR Y5, Y7, Y7                   \
	FOLD(Y14, Y6, Y8)                  \
	VPXOR Y6, Y7, Y7

// FINISH makes the CRC register of Y7, the one register that is left: it adds its first lane to
// the last, and has CRC32 divide the 16 octets that this is.
#define FINISH \
	VEXTRACTI128 $1, Y7, X8            \
	VMOVDQU ·powers+96(SB), X12        \
	VPCLMULQDQ $0x00, X12, X7, X9      \
	VPCLMULQDQ $0x11, X12, X7, X7      \
	VPXOR X9, X8, X8                   \
	VPXOR X8, X7, X7                   \
	VMOVQ X7, DX                       \
	VPEXTRQ $1, X7, BX                 \
	XORL AX, AX                        \
	CRC32Q DX, AX                      \
	CRC32Q BX, AX                      \
	VZEROUPPER

// func fold256(state uint32, p []byte) uint32
TEXT ·fold256(SB), NOSPLIT, $0-36
	MOVL  state+0(FP), AX
	VMOVD AX, X8
	MOVQ  p_base+8(FP), SI
	MOVQ  p_len+16(FP), CX
	VBROADCASTI128 ·powers+80(SB), Y14

	// The CRC register is added to the first 32 bits of the message.
	CMPQ    CX, $256
	JB      short
	VPXOR   0(SI), Y8, Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	VBROADCASTI128 ·powers+0(SB), Y15
	ADDQ    $256, SI
	SUBQ    $256, CX
	CMPQ    CX, $256
	JB      merge

loop:
	NEXT(0, Y0)
	NEXT(32, Y1)
	NEXT(64, Y2)
	NEXT(96, Y3)
	NEXT(128, Y4)
	NEXT(160, Y5)
	NEXT(192, Y6)
	NEXT(224, Y7)
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop

merge:
	MERGE
	JMP rest

short:
	VPXOR 0(SI), Y8, Y7
	ADDQ  $32, SI
	SUBQ  $32, CX

rest:
	CMPQ CX, $32
	JB   finish

single:
	FOLD(Y14, Y7, Y8)
	VPXOR 0(SI), Y7, Y7
	ADDQ  $32, SI
	SUBQ  $32, CX
	CMPQ  CX, $32
	JAE   single

finish:
	FINISH

// Less than 32 octets are left: CRC32 takes them by 8, 4, 2 and 1.
	WORDS
	MOVL AX, ret+32(FP)
	RET

// func foldCopy256(dst, src []byte, state uint32) uint32
TEXT ·foldCopy256(SB), NOSPLIT, $0-60
	MOVQ  dst_base+0(FP), DI
	MOVQ  src_base+24(FP), SI
	MOVQ  src_len+32(FP), CX
	MOVL  state+48(FP), AX
	VMOVD AX, X8
	VBROADCASTI128 ·powers+80(SB), Y14

	CMPQ CX, $256
	JB   short
	TAKE(0, Y0)
	TAKE(32, Y1)
	TAKE(64, Y2)
	TAKE(96, Y3)
	TAKE(128, Y4)
	TAKE(160, Y5)
	TAKE(192, Y6)
	TAKE(224, Y7)
	VPXOR Y8, Y0, Y0
	VBROADCASTI128 ·powers+0(SB), Y15
	ADDQ  $256, SI
	ADDQ  $256, DI
	SUBQ  $256, CX
	CMPQ  CX, $256
	JB    merge

loop:
	COPY(0, Y0)
	COPY(32, Y1)
	COPY(64, Y2)
	COPY(96, Y3)
	COPY(128, Y4)
	COPY(160, Y5)
	COPY(192, Y6)
	COPY(224, Y7)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop

merge:
	MERGE
	JMP rest

short:
	TAKE(0, Y7)
	VPXOR Y8, Y7, Y7
	ADDQ  $32, SI
	ADDQ  $32, DI
	SUBQ  $32, CX

rest:
	CMPQ CX, $32
	JB   finish

single:
	VMOVDQU 0(SI), Y9
	FOLD(Y14, Y7, Y8)
	VMOVDQU Y9, 0(DI)
	VPXOR   Y9, Y7, Y7
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $32, CX
	CMPQ    CX, $32
	JAE     single

finish:
	FINISH

// Less than 32 octets are left: CRC32 takes them by 8, 4, 2 and 1.
	WORDSCOPY
	MOVL AX, ret+56(FP)
	RET

// ADD folds Y over 256 octets, stores those in Y9 at an offset from DI and adds them.
#define ADD(offset, Y) \
	FOLD(Y15, Y, Y8)            \
	VMOVDQU Y9, offset(DI)      \
	VPXOR Y9, Y, Y

// WEAVE is COPY of octets that stand at another offset from SI.
#define WEAVE(from, to, Y) \
	VMOVDQU from(SI), Y9        \
	ADD(to, Y)

// move has VPERMD move 28 octets four further on.
DATA move<>+0(SB)/8, $0x0000000000000000
DATA move<>+8(SB)/8, $0x0000000200000001
DATA move<>+16(SB)/8, $0x0000000400000003
DATA move<>+24(SB)/8, $0x0000000600000005
GLOBL move<>(SB), RODATA|NOPTR, $32

// func foldWeave256(dst, src []byte, distance, state uint32) uint32
//
// The first 32 octets of a block are the marker and 28 of src: what is loaded is moved by four
// octets, and the last four of it are loaded again by the next.
TEXT ·foldWeave256(SB), NOSPLIT, $0-60
	MOVQ  dst_base+0(FP), DI
	MOVQ  dst_len+8(FP), CX
	MOVQ  src_base+24(FP), SI
	MOVL  distance+48(FP), R8
	MOVL  state+52(FP), AX
	VMOVD AX, X12
	VMOVDQU move<>(SB), Y10
	VBROADCASTI128 ·powers+80(SB), Y14
	VBROADCASTI128 ·powers+0(SB), Y15

	// Nothing is folded yet: what is added to the first octets is the CRC register alone.
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

block:
	MOVL   R8, BX
	ANDL   $0xffff, BX // FPDUPTR has 16 bits, and RESERVED in front of it is 0
	BSWAPL BX
	VMOVD  BX, X11
	VPERMD 0(SI), Y10, Y9
	VPBLENDD $1, Y11, Y9, Y9
	ADD(0, Y0)
	VPXOR Y12, Y0, Y0
	VPXOR Y12, Y12, Y12
	WEAVE(28, 32, Y1)
	WEAVE(60, 64, Y2)
	WEAVE(92, 96, Y3)
	WEAVE(124, 128, Y4)
	WEAVE(156, 160, Y5)
	WEAVE(188, 192, Y6)
	WEAVE(220, 224, Y7)
	WEAVE(252, 256, Y0)
	WEAVE(284, 288, Y1)
	WEAVE(316, 320, Y2)
	WEAVE(348, 352, Y3)
	WEAVE(380, 384, Y4)
	WEAVE(412, 416, Y5)
	WEAVE(444, 448, Y6)
	WEAVE(476, 480, Y7)
	ADDL $512, R8
	ADDQ $508, SI
	ADDQ $512, DI
	SUBQ $512, CX
	JA   block

	MERGE
	FINISH
	MOVL AX, ret+56(FP)
	RET
