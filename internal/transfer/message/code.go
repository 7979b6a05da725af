package message

import "fmt"

// A Code says how something has ended.
type Code uint16

// The codes.
const (
	OK         Code = iota
	Already         // the receiver has it, and the digests are equal
	Missing         // there is no such file
	BadName         // a name that the receiver cannot have
	Exists          // there is something with this name
	Unlike          // there is a file with this name and other contents
	Unfinished      // an earlier transfer was cut
	Busy            // another transfer of it is under way
	Changed         // the file changed while it was sent
	Corrupt         // the digests are not equal
	Full            // no space
	Denied          // not allowed
	ReadOnly        // the server takes no files
	NotRegular      // neither a file nor a directory, or not the one that is wanted
	Failed          // anything else
	Twice           // another source has brought something with this name
	codes
)

// Texts are for those who read the code of an Answer, with what to do.
var texts = [codes]string{
	OK:         "copied",
	Already:    "there already, and the same",
	Missing:    "there is no such file",
	BadName:    "not a name to copy",
	Exists:     "exists already: --force replaces it, --resume leaves it if it is the same",
	Unlike:     "exists already, and is another file: --force replaces it",
	Unfinished: "an earlier copy of it was cut: --resume goes on with it, --force begins anew",
	Busy:       "another copy of it is under way: wait for its end",
	Changed:    "changed while it was copied: --resume copies what is different now",
	Corrupt:    "the digests of the two ends differ: --resume copies it again",
	Full:       "no space: make room, and --resume goes on",
	Denied:     "not allowed",
	ReadOnly:   "the server takes no files: it is to run with --writable for that",
	NotRegular: "not copied",
	Failed:     "not copied",
	Twice:      "not copied: another file of this name was just copied",
}

// String says what it means, and what to do.
func (c Code) String() string {
	if c < codes {
		return texts[c]
	}
	return fmt.Sprintf("code %d", uint16(c))
}
