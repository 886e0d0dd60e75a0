package sock

import (
	"strings"
	"testing"
)

func TestParseDisabled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		list  string
		want  Disabled
		wrong string // what the error names; "": none
	}{
		{"", Disabled{}, ""},
		{" , ,", Disabled{}, ""},
		{"gso", Disabled{GSO: true}, ""},
		{"gro", Disabled{GRO: true}, ""},
		{"mmsg", Disabled{Batches: true}, ""},
		{"mmsg,gso", Disabled{GSO: true, Batches: true}, ""},
		{" gro, gso  mmsg,", Disabled{true, true, true}, ""},
		{"gso,gso", Disabled{GSO: true}, ""},
		{"GSO", Disabled{}, `"GSO"`},
		{"gro;gso", Disabled{}, `"gro;gso"`},
		{"all", Disabled{}, `"all"`},
	} {
		got, err := parseDisabled(row.list)
		switch {
		case row.wrong == "" && (err != nil || got != row.want):
			t.Errorf("%q: %+v, %v; want %+v", row.list, got, err, row.want)
		case row.wrong != "" && (err == nil || !strings.Contains(err.Error(), row.wrong) || !strings.Contains(err.Error(), disableVariable)):
			t.Errorf("%q: %v; want an error that names %s", row.list, err, row.wrong)
		}
	}
}

// TestDisabledByEnvironment has the variable read each time.
func TestDisabledByEnvironment(t *testing.T) {
	for list, want := range map[string]Disabled{"": {}, "gso": {GSO: true}} {
		t.Setenv(disableVariable, list)
		if got, err := DisabledByEnvironment(); got != want || err != nil {
			t.Errorf("%q: %+v, %v", list, got, err)
		}
	}
}
