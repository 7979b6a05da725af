// WORDS has CRC32 take the CX octets at SI into AX, by 8, 4, 2 and 1. It ends at the label
// done, and may stand in a function once.
#define WORDS \
words: \
	CMPQ CX, $8; \
	JB   long; \
	CRC32Q 0(SI), AX; \
	ADDQ $8, SI; \
	SUBQ $8, CX; \
	JMP  words; \
long: \
	TESTQ $4, CX; \
	JZ    word; \
	CRC32L 0(SI), AX; \
	ADDQ $4, SI; \
word: \
	TESTQ $2, CX; \
	JZ    octet; \
	CRC32W 0(SI), AX; \
	ADDQ $2, SI; \
octet: \
	TESTQ $1, CX; \
	JZ    done; \
	CRC32B 0(SI), AX; \
done:

// WORDSCOPY is WORDS that also stores the octets at DI.
#define WORDSCOPY \
words: \
	CMPQ CX, $8; \
	JB   long; \
	MOVQ 0(SI), R8; \
	MOVQ R8, 0(DI); \
	CRC32Q R8, AX; \
	ADDQ $8, SI; \
	ADDQ $8, DI; \
	SUBQ $8, CX; \
	JMP  words; \
long: \
	TESTQ $4, CX; \
	JZ    word; \
	MOVL 0(SI), R8; \
	MOVL R8, 0(DI); \
	CRC32L R8, AX; \
	ADDQ $4, SI; \
	ADDQ $4, DI; \
word: \
	TESTQ $2, CX; \
	JZ    octet; \
	MOVW 0(SI), R8; \
	MOVW R8, 0(DI); \
	CRC32W R8, AX; \
	ADDQ $2, SI; \
	ADDQ $2, DI; \
octet: \
	TESTQ $1, CX; \
	JZ    done; \
	MOVB 0(SI), R8; \
	MOVB R8, 0(DI); \
	CRC32B R8, AX; \
done:
