package weir

import (
	"os"
	"strings"
	"testing"
)

// TestREADMEExample holds the README's program to one that is compiled.
func TestREADMEExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := os.ReadFile("example_echo_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	shown, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md shows no Go program")
	}
	_, body, _ := strings.Cut(string(compiled), "func Example_echoServer() {\n")
	body = strings.TrimSuffix(body, "}\n")
	if got := strings.ReplaceAll(body, "\n\t", "\n"); strings.TrimPrefix(got, "\t") != shown {
		t.Errorf("README.md's program is not the one in example_echo_test.go:\n%s", shown)
	}
}
