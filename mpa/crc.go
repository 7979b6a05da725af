package mpa

import (
	"encoding/binary"
	"hash/crc32"
)

const crcLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C adds p to a CRC32c that began as 0, and returns the new value.
//
// RFC 5044, Section 4.4: the CRC field "MUST be computed using the CRC32c
// polynomial in the manner described in the iSCSI Protocol document". That is
// the reflected CRC with initial value and final complement all ones, sent with
// its least significant octet first, as [AppendCRC] does. [F04]
func CRC32C(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

// AppendCRC appends the CRC field for the value crc. [F04]
func AppendCRC(dst []byte, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc)
}

// wireCRC returns the CRC as the number that its four octets show in a hex dump.
func wireCRC(crc uint32) uint32 {
	var b [crcLen]byte
	binary.LittleEndian.PutUint32(b[:], crc)
	return binary.BigEndian.Uint32(b[:])
}
