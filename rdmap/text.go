package rdmap

import (
	"fmt"
	"strconv"
	"strings"
)

// UnmarshalText takes what String returns.
func (o *Opcode) UnmarshalText(b []byte) error {
	for op := range Opcode(1 << 4) {
		if op.String() == string(b) {
			*o = op
			return nil
		}
	}
	return fmt.Errorf("rdmap: there is no opcode %q", b)
}

// UnmarshalText takes what String returns, which ends with the number in parentheses.
func (c *Code) UnmarshalText(b []byte) error {
	s := string(b)
	at := strings.LastIndex(s, "(0x")
	if at < 0 || !strings.HasSuffix(s, ")") {
		return fmt.Errorf("rdmap: there is no code in %q", b)
	}
	n, err := strconv.ParseUint(s[at+len("(0x"):len(s)-1], 16, 16)
	if err != nil {
		return fmt.Errorf("rdmap: there is no code in %q", b)
	}
	*c = Code(n)
	return nil
}
