package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoadCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	pair := func(name string, at time.Time) (text string) {
		b, err := makePair([]string{"localhost"}, at)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name), string(b))
		return string(b)
	}
	good := pair("good", now)
	pair("other", now)
	pair("old", now.Add(-ownLife-24*time.Hour))
	pair("early", now.Add(48*time.Hour))
	cert, key, _ := strings.Cut(good, "-----BEGIN PRIVATE KEY")
	key = "-----BEGIN PRIVATE KEY" + key
	for name, text := range map[string]string{
		"cert": cert, "key": key, "empty": "", "words": "hello",
		"broken cert": strings.Replace(cert, "\nMI", "\nXX", 1), "broken key": strings.Replace(key, "\nMI", "\nXX", 1),
		"endless": strings.Repeat(" ", maxGivenPEM) + "!", "roomy": cert + strings.Repeat("\n", maxGivenPEM-len(cert)),
		"encrypted": strings.ReplaceAll(key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
	} {
		put(t, filepath.Join(dir, name), text)
	}
	for _, c := range []struct{ cert, key, want string }{
		{"good", "good", ""},
		{"cert", "key", ""},
		{"roomy", "key", ""},
		{"endless", "key", `--cert "endless": it is larger than 1.0 MB`},
		{"cert", "endless", `--key "endless": it is larger than 1.0 MB`},
		{"none", "key", `--cert "none": no such file or directory`},
		{"cert", "none", `--key "none": no such file or directory`},
		{".", "key", `--cert ".": is a directory`},
		{"empty", "key", `--cert "empty": there is no certificate in PEM form in it`},
		{"key", "key", `--cert "key": there is no certificate in PEM form in it`},
		{"cert", "words", `--key "words": there is no private key in PEM form in it`},
		{"cert", "cert", `--key "cert": there is no private key in PEM form in it`},
		{"cert", "encrypted", `--key "encrypted": the key is encrypted; openssl pkey -in encrypted -out plain.pem makes one that is not`},
		{"cert", "other", `--cert "cert" with --key "other": private key does not match public key`},
		{"broken cert", "key", `--cert "broken cert" with --key "key": x509: malformed certificate`},
		{"cert", "broken key", `--cert "cert" with --key "broken key": failed to parse private key`},
		{"old", "old", `--cert "old": the certificate has expired on 2026-02-28`},
		{"early", "early", `--cert "early": the certificate is not valid before 2026-03-02`},
	} {
		_, err := loadCertificate(filepath.Join(dir, c.cert), filepath.Join(dir, c.key), now)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir+"/", ""), dir, ".")
		}
		if got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.cert, c.key, got, c.want)
		}
	}
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	c, err := (&ownCertificate{names: []string{"localhost"}, now: time.Now(), warn: func(string, ...any) {}}).get()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(c.fingerprint(), ":", ""))
	if sum := sha256.Sum256(c.pair.Leaf.Raw); err != nil || string(raw) != string(sum[:]) || len(c.fingerprint()) != 95 {
		t.Error(c.fingerprint())
	}
	if sum := sha256.Sum256(c.pair.Leaf.RawSubjectPublicKeyInfo); c.spki() != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Error(c.spki())
	}
	if text := c.text(); !strings.Contains(text, fmt.Sprintf("until %s, SHA-256 %s, SPKI %s", c.pair.Leaf.NotAfter.UTC().Format(time.DateOnly), c.fingerprint(), c.spki())) {
		t.Error(text)
	}
}
