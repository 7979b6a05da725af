package interop_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// An nvmeCase is what a case of blktests' nvme group asks of a target, asked of our command's disk by Linux's host.
type nvmeCase struct {
	number string // blktests'
	what   string // as in docs/dev/disk.md
	// script runs in the guest under "set -e" with the functions of nvmeCaseScript.
	script string
}

// nvmeCases are those that apply to a target that is not the kernel's, with less data and shorter times: the guest is
// emulated.
var nvmeCases = []nvmeCase{
	{"003", "A controller for discovery is kept alive.", `connect nqn.2014-08.org.nvmexpress.discovery -k 4
usleep 8000000
[ "$(cat /sys/class/nvme/nvme*/state)" = live ]
if dmesg | grep 'failed nvme_keep_alive_end_io'; then exit 1; fi
nvme disconnect -n nqn.2014-08.org.nvmexpress.discovery`},
	{"004", "The namespace has its UUID, and by that its name for the system.",
		`attach; [ "$(cat /sys/block/$ns/wwid)" = uuid.$UUID ]`},
	{"005", "A reset, and a disconnect directly after it.", `attach; echo 1 >/sys/class/nvme/$ctl/reset_controller`},
	{"006", "Discovery finds the target.", `nvme discover -t rdma -a $PEER_IP -s $PORT | grep "^subnqn: *$NQN$"`},
	{"008", "A host connects, and sees subsystem and disk.",
		`attach; nvme id-ctrl /dev/$ctl | grep "^subnqn *: $NQN$"; nvme id-ns /dev/$ns | grep '^nsze'`},
	{"010", "fio writes, reads back and compares.", `attach; verify`},
	{"014", "Flush after writes.", `attach; dd if=/dev/urandom of=/dev/$ns bs=4k count=1024 2>/dev/null; nvme flush /dev/$ns`},
	{"018", "A read after the last block is refused.", `attach
if nvme read /dev/$ns --start-block $(blockdev --getsz /dev/$ns) --block-count 0 --data-size 512 >/tmp/out 2>&1; then exit 1; fi
grep -i 'lba out of range' /tmp/out`},
	{"019", "Discard of ten ranges at once.", `attach; nvme dsm /dev/$ns --ad --slbs 100,200,300,400,500,600,700,800,900,1000 --blocks 10,10,10,10,10,10,10,10,10,10`},
	{"021", "The disk is in the host's list of disks.", `attach; nvme list | grep "/dev/$ns "`},
	{"022", "A reset.", `attach; nvme reset /dev/$ctl; state live`},
	{"023", "The log of its health.", `attach; nvme smart-log /dev/$ns`},
	{"025", "The log of its commands' effects.", `attach; nvme effects-log /dev/$ctl`},
	{"026", "The descriptors of the namespace.", `attach; nvme ns-descs /dev/$ns | grep "uuid *: $UUID"`},
	{"027", "A rescan of the namespaces.", `attach; nvme ns-rescan /dev/$ctl; [ -b /dev/$ns ]`},
	{"028", "The subsystem is in the host's list.",
		`attach; nvme list-subsys | grep "$NQN"; nvme list-subsys | grep 'rdma traddr='`},
	{"029", "Writes and reads by commands of a program, with lengths near a power of two.", `attach
for blocks in 1,512 1,511 1,513 511,1024 511,1023 511,1025; do passthrough ${blocks%,*} ${blocks#*,}; done`},
	{"031", "A host connects and disconnects ten times (blktests makes the kernel's target anew each time).", `for i in 1 2 3 4 5 6 7 8 9 10; do
	connect $NQN; nvme disconnect -n $NQN
done`},
	{"040", "A reset, and then a removal, while a program works.", `attach; work &
usleep 2000000; nvme reset /dev/$ctl; state live; usleep 500000
echo 1 >/sys/class/nvme/$ctl/delete_controller
wait
gone`},
	{"047", "Queues for writes alone, and polled queues (fio on the disk itself, not on XFS).", `attach -W 1; verify; disconnect
attach -W 1 -P 1; verify`},
	{"061", "The target ends and returns while a program works, six times.", `attach -k 5 -c 1; work &
for i in 1 2 3 4 5 6; do
	echo "DOWN $i"; state connecting
	echo "UP $i"; state live
done
kill $(pidof fio) 2>/dev/null || true
wait`},
}

// row returns the row of the document's table.
func (c *nvmeCase) row() string { return "| " + c.number + " | " + c.what + " |" }

// diskDoc has the tables of blktests' cases.
const diskDoc = "../docs/dev/disk.md"

const (
	nvmeCasesHead  = "| case | what is asked |\n|---|---|\n"
	nvmeOthersHead = "| other cases | why not |\n|---|---|\n"
)

// diskTable returns the document up to the rows of a table, these, and the rest.
func diskTable(t *testing.T, head string) (before string, rows []string, after string) {
	t.Helper()
	doc, err := os.ReadFile(diskDoc)
	testrig.Must(t, err)
	before, rest, ok := strings.Cut(string(doc), head)
	if !ok {
		t.Fatalf("%s has no table %q", diskDoc, head)
	}
	table, after, end := strings.Cut(rest, "\n\n")
	if !end {
		table = strings.TrimSuffix(rest, "\n")
		after = ""
	}
	return before + head, strings.Split(table, "\n"), after
}

// TestNVMeCasesTable holds the document's table against the cases that TestNVMeCases tries; with -update it is written.
func TestNVMeCasesTable(t *testing.T) {
	before, rows, after := diskTable(t, nvmeCasesHead)
	var want []string
	for i := range nvmeCases {
		want = append(want, nvmeCases[i].row())
	}
	if *update {
		testrig.Must(t, os.WriteFile(diskDoc, []byte(before+strings.Join(want, "\n")+"\n\n"+after), 0o644))
		return
	}
	if d := gocmp.Diff(want, rows); d != "" {
		t.Errorf("%s (-cases +document, see -update):\n%s", diskDoc, d)
	}
}

// TestNVMeOtherCases holds that each case of blktests (of May 2025) is either tried, or has a reason.
func TestNVMeOtherCases(t *testing.T) {
	told := make(map[string]int)
	for _, c := range nvmeCases {
		told[c.number]++
	}
	_, rows, _ := diskTable(t, nvmeOthersHead)
	for _, row := range rows {
		cases, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for number := range strings.SplitSeq(expandCases(cases), " ") {
			told[number]++
		}
	}
	var missing []string
	for n := 2; n <= 63; n++ {
		if number := fmt.Sprintf("%03d", n); !slices.Contains(noNVMeCases, number) {
			if told[number] != 1 {
				missing = append(missing, fmt.Sprintf("%s: %d times", number, told[number]))
			}
			delete(told, number)
		}
	}
	if missing != nil || len(told) != 0 {
		t.Errorf("%s does not tell of each case once: %v; of none that there is: %v",
			diskDoc, missing, slices.Sorted(maps.Keys(told)))
	}
}

// noNVMeCases are numbers between the first and the last that blktests has no case for.
var noNVMeCases = []string{"007", "009", "011", "013", "015", "020", "024"}

var caseRange = regexp.MustCompile(`(\d{3}) to (\d{3})`)

// expandCases makes "002 003 004 006" of "002 to 004, 006".
func expandCases(s string) string {
	s = caseRange.ReplaceAllStringFunc(s, func(r string) string {
		var from, to int
		_, _ = fmt.Sscanf(r, "%d to %d", &from, &to)
		var all []string
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("%03d", n))
		}
		return strings.Join(all, " ")
	})
	return strings.ReplaceAll(s, ",", "")
}
