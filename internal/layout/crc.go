package layout

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

// CRC32C adds p to a CRC32c that began as 0, and returns the new value.
//
// RFC 5044, section 4.4: the CRC field "MUST be computed using the CRC32c
// polynomial in the manner described in the iSCSI Protocol [iSCSI] document". That is
// the reflected CRC with initial value and final complement all ones, sent with
// its least significant byte first, as [AppendCRC] does.
func CRC32C(crc uint32, p []byte) uint32 { return crc32c.Update(crc, p) }

// AppendCRC appends the CRC field for the value crc (RFC 5044, section 4.4).
func AppendCRC(dst []byte, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc)
}

// CRCValid reports whether the last four bytes of b, which is a whole FPDU, are the
// CRC of those before them.
func CRCValid(b []byte) bool {
	at := len(b) - CRCLen
	return binary.LittleEndian.Uint32(b[at:]) == CRC32C(0, b[:at])
}
