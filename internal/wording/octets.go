package wording

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseOctets reads a number of octets, which a K, M or G at its end, in either case,
// multiplies by 2^10, 2^20 or 2^30.
func ParseOctets(text string) (int64, error) {
	digits, shift := text, 0
	if n := len(digits); n > 0 {
		if i := strings.IndexByte("KMG", digits[n-1]&^0x20); i >= 0 {
			digits, shift = digits[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63-shift)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of octets, such as 65536, 64K, 10M or 1G", text)
	}
	return int64(n) << shift, nil
}
