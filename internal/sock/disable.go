package sock

import (
	"fmt"
	"os"
	"strings"
)

// disableVariable is the environment's way to switch fast paths off.
const disableVariable = "WEIR_DISABLE"

// Disabled is what the environment switches off.
type Disabled struct{ GSO, GRO, Batches bool }

// DisabledByEnvironment reads WEIR_DISABLE: a list of gso, gro and mmsg.
func DisabledByEnvironment() (Disabled, error) { return parseDisabled(os.Getenv(disableVariable)) }

func parseDisabled(list string) (d Disabled, err error) {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "gso":
			d.GSO = true
		case "gro":
			d.GRO = true
		case "mmsg":
			d.Batches = true
		default:
			return d, fmt.Errorf("%s names %q; it can name gso, gro and mmsg", disableVariable, word)
		}
	}
	return d, nil
}
