package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keeper keeps certificates in a folder of the test, at a time of its own.
type keeper struct {
	ownCertificate
	warned []string
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{}
	k.dir, k.names = filepath.Join(t.TempDir(), "cache", "weir"), ownNames("localhost")
	k.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k.warn = func(format string, args ...any) { k.warned = append(k.warned, fmt.Errorf(format, args...).Error()) }
	return k
}

func (k *keeper) file() string { return filepath.Join(k.dir, keptInPEM) }

func (k *keeper) certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	c, err := k.get()
	if err != nil {
		t.Fatal(err)
	}
	return c.pair.Leaf
}

func TestOwnCertificateIsMade(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.names = ownNames("weir.test")
	c := k.certificate(t)
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() || c.IsCA || c.NotAfter.Sub(k.now) != ownLife || c.NotBefore.After(k.now) {
		t.Errorf("%T, authority %v, from %v to %v", c.PublicKey, c.IsCA, c.NotBefore, c.NotAfter)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c)
	machine, _ := os.Hostname()
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "weir.test", machine} {
		if _, err := c.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: k.now}); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(k.file())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if entries, err := os.ReadDir(k.dir); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v %v", entries, err)
	}
	if len(k.warned) > 0 {
		t.Error(k.warned)
	}
}

func TestOwnCertificateIsKept(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	first := k.certificate(t)
	k.now = k.now.Add(ownLife - ownRenew - time.Hour)
	if !k.certificate(t).Equal(first) {
		t.Error("made anew")
	}
	k.now = k.now.Add(2 * time.Hour)
	second := k.certificate(t)
	if second.Equal(first) || second.NotAfter.Sub(k.now) != ownLife {
		t.Error("kept with less than a month left")
	}
	k.now = k.now.Add(-2 * time.Hour) // a clock that was wrong
	if k.certificate(t).Equal(second) {
		t.Error("kept before its time")
	}
	if len(k.warned) > 0 {
		t.Error(k.warned)
	}
}

// One that lacks a name is made anew, with the names that it had: two sets of names do not take turns.
func TestOwnCertificateNames(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	first := k.certificate(t)
	k.names = ownNames("192.0.2.1")
	second := k.certificate(t)
	if second.Equal(first) || !slices.Contains(namesOf(second), "192.0.2.1") {
		t.Error(namesOf(second))
	}
	k.names = ownNames("a.test")
	third := k.certificate(t)
	for _, host := range []string{"localhost", "192.0.2.1", "a.test"} {
		k.names = ownNames(host)
		if !k.certificate(t).Equal(third) {
			t.Errorf("made anew for %s", host)
		}
	}
	for i := range 2 * maxNames {
		k.names = ownNames(fmt.Sprintf("a%d.test", i))
		if names := namesOf(k.certificate(t)); len(names) > maxNames || !slices.Contains(names, fmt.Sprintf("a%d.test", i)) {
			t.Fatal(names)
		}
	}
}

// An address may be written in many ways, and a certificate with it is kept whichever it was.
func TestOwnCertificateAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"0:0:0:0:0:0:0:1", "2001:DB8::1", "::ffff:192.0.2.1"} {
		k := newKeeper(t)
		k.names = ownNames(host)
		if first := k.certificate(t); !k.certificate(t).Equal(first) {
			t.Errorf("made anew for %s", host)
		}
	}
}

func TestOwnNames(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"a.test": true, "192.0.2.1": true, "2001:db8::1": true, "": false, "0.0.0.0": false, "::": false, "fe80::1%eth0": false,
		"a b": false, "ü.test": false, "*.test": false, strings.Repeat("x", 300): false,
	} {
		if got := slices.Contains(ownNames(host), host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
	if names := ownNames("127.0.0.1"); slices.Index(names, "127.0.0.1") < 0 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Error(names)
	}
}

func TestOwnCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"empty":      func(file string) error { return os.Truncate(file, 0) },
		"cut":        func(file string) error { return os.Truncate(file, 300) },
		"other text": func(file string) error { return os.WriteFile(file, []byte("hello"), 0o600) },
		"huge":       func(file string) error { return errors.Join(os.Truncate(file, 0), os.Truncate(file, 1<<40)) },
		"readable":   func(file string) error { return os.Chmod(file, 0o644) },
		"two halves": func(file string) error {
			text, err := makePair([]string{"localhost"}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			old, readErr := os.ReadFile(file)
			if err != nil || readErr != nil {
				return err
			}
			cert, _, _ := strings.Cut(string(old), "-----BEGIN PRIVATE KEY")
			_, key, _ := strings.Cut(string(text), "-----BEGIN PRIVATE KEY")
			return os.WriteFile(file, []byte(cert+"-----BEGIN PRIVATE KEY"+key), 0o600)
		},
		"a link": func(file string) error {
			if err := os.Rename(file, file+".old"); err != nil {
				return err
			}
			return os.Symlink(file+".old", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			first := k.certificate(t)
			if err := spoil(k.file()); err != nil {
				t.Fatal(err)
			}
			second := k.certificate(t)
			if second.Equal(first) || len(k.warned) != 1 || !strings.Contains(k.warned[0], "is of no use and made anew") {
				t.Errorf("kept %v, warned %q", second.Equal(first), k.warned)
			}
			if !k.certificate(t).Equal(second) || len(k.warned) != 1 {
				t.Errorf("not mended: %q", k.warned)
			}
			if info, err := os.Lstat(k.file()); err != nil || info.Mode() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
		})
	}
}

// Where it cannot be kept it is in memory, and that is told. The folder is a file, as root may write to all others.
func TestOwnCertificateInMemory(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	put(t, filepath.Dir(k.dir), "a file")
	first := k.certificate(t)
	if len(k.warned) == 0 || !strings.Contains(k.warned[len(k.warned)-1], "cannot be kept: mkdir") {
		t.Errorf("warned %q", k.warned)
	}
	if k.certificate(t).Equal(first) {
		t.Error("kept somewhere")
	}
	k = newKeeper(t)
	k.dir = ""
	k.certificate(t)
	if len(k.warned) != 1 || !strings.Contains(k.warned[0], "the system names no cache folder") {
		t.Errorf("warned %q", k.warned)
	}
	// A folder in its place cannot be replaced; nothing is left of the try.
	k = newKeeper(t)
	put(t, k.file()+"/x/", "")
	k.certificate(t)
	if entries, _ := os.ReadDir(k.dir); len(entries) != 1 || len(k.warned) != 2 {
		t.Errorf("%v, warned %q", entries, k.warned)
	}
}
