package encrypt

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
)

const (
	key16 = "MDEyMzQ1Njc4OWFiY2RlZg=="
	key32 = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	other = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	place = "/registry/secrets/default/s"
)

func write(t testing.TB, file, resources string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + resources
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil { // nobody reads half of it
		t.Fatal(err)
	}
}

func transformer(t testing.TB, resources string) (*Transformer, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, resources)
	made, err := New(t.Context(), file, clock.RealClock{}, prometheus.NewRegistry(), zap.NewNop())
	if err == nil {
		t.Cleanup(func() { made.current.Load().end() })
		made.RegisterPrefix("/registry/secrets/", "", "secrets")
		made.RegisterPrefix("/registry/deployments/", "apps", "deployments")
		made.RegisterPrefix("/registry/services/specs/", "", "services")
	}
	return made, err
}

func mustTransformer(t testing.TB, resources string) *Transformer {
	t.Helper()
	made, err := transformer(t, resources)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func providers(lines ...string) string {
	return "- resources: [secrets]\n  providers:\n  - " + strings.Join(lines, "\n  - ") + "\n"
}

func keysOf(kind string, pairs ...string) string {
	var keys []string
	for i := 0; i < len(pairs); i += 2 {
		keys = append(keys, "{name: "+pairs[i]+", secret: "+pairs[i+1]+"}")
	}
	return kind + ": {keys: [" + strings.Join(keys, ", ") + "]}"
}

func kmsOf(s *service, name string) string {
	return "kms: {apiVersion: v2, name: " + name + ", endpoint: '" + s.endpoint + "'}"
}

func TestThereAndBack(t *testing.T) {
	s := startKMS(t)
	nameless := "@kctl-kms-test-" + strconv.Itoa(os.Getpid())
	for prefix, line := range map[string]string{
		"k8s:enc:kms:v2:abstract:":   kmsOf(startKMSAt(t, nameless, "unix:///"+nameless), "abstract"),
		"k8s:enc:aesgcm:v1:key1:":    keysOf("aesgcm", "key1", key16),
		"k8s:enc:aescbc:v1:key1:":    keysOf("aescbc", "key1", key32),
		"k8s:enc:secretbox:v1:key1:": keysOf("secretbox", "key1", key32),
		"k8s:enc:kms:v2:mine:":       kmsOf(s, "mine"),
	} {
		t.Run(prefix, func(t *testing.T) {
			tr := mustTransformer(t, providers(line, "identity: {}"))
			for size := range 70 {
				plain := bytes.Repeat([]byte("x"), size)
				sealed, err := tr.Seal(t.Context(), place, plain)
				if err != nil || !bytes.HasPrefix(sealed, []byte(prefix)) || size > 8 && bytes.Contains(sealed, plain) {
					t.Fatalf("%v %q", err, sealed)
				}
				opened, stale, err := tr.Open(t.Context(), place, sealed)
				if err != nil || stale || !bytes.Equal(opened, plain) {
					t.Fatalf("%d bytes: %v, stale %v", size, err, stale)
				}
				if again, _ := tr.Seal(t.Context(), place, plain); bytes.Equal(again, sealed) {
					t.Fatal("sealed twice alike")
				}
				sealed[len(sealed)-1] ^= 1
				if opened, _, err := tr.Open(t.Context(), place, sealed); err == nil && !strings.Contains(prefix, "aescbc") {
					t.Fatalf("a changed value was opened: %q", opened)
				}
				sealed[len(sealed)-1] ^= 1
				if _, _, err := tr.Open(t.Context(), place+"2", sealed); err == nil && (strings.Contains(prefix, "gcm") || strings.Contains(prefix, "kms")) {
					t.Fatal("a value was opened under another key's name")
				}
			}
			if plain, stale, err := tr.Open(t.Context(), place, []byte(`{"a":1}`)); err != nil || !stale || string(plain) != `{"a":1}` {
				t.Errorf("a value from before: %q, stale %v, %v", plain, stale, err)
			}
		})
	}
}

// TestUnclaimed: values of custom resources can't be decrypted before their
// definitions are known, which is not a failure. What is not of a resource is in plain text.
func TestUnclaimed(t *testing.T) {
	const custom = "/registry/x.io/widgets/default/w"
	rules := providers("identity: {}") + "- resources: [widgets.x.io]\n  providers:\n  - " + keysOf("secretbox", "a", key32) + "\n"
	before := mustTransformer(t, rules)
	before.RegisterPrefix("/registry/x.io/widgets/", "x.io", "widgets")
	sealed, err := before.Seal(t.Context(), custom, []byte("text"))
	if err != nil || !bytes.HasPrefix(sealed, []byte(sealedPrefix)) {
		t.Fatalf("%q, %v", sealed, err)
	}
	started := mustTransformer(t, rules)
	if plain, _, err := started.Open(t.Context(), custom, sealed); err == nil {
		t.Errorf("before it is claimed: %q", plain)
	}
	if n := testutil.CollectAndCount(started.metrics.operations); n != 0 {
		t.Errorf("counted in %d metrics", n)
	}
	started.RegisterPrefix("/registry/x.io/widgets/", "x.io", "widgets")
	if plain, _, err := started.Open(t.Context(), custom, sealed); err != nil || string(plain) != "text" {
		t.Errorf("once it is claimed: %q, %v", plain, err)
	}
	lost := mustTransformer(t, strings.Replace(rules, key32, other, 1))
	lost.RegisterPrefix("/registry/x.io/widgets/", "x.io", "widgets")
	_, _, err = lost.Open(t.Context(), custom, sealed)
	failed := lost.metrics.operations.WithLabelValues("widgets.x.io", fromStorage, "a:", "unknown-non-grpc")
	if err == nil || testutil.ToFloat64(failed) != 1 {
		t.Errorf("with a key that is lost: %v", err)
	}
	all := mustTransformer(t, "- resources: ['*.*']\n  providers:\n  - "+keysOf("secretbox", "a", key32)+"\n")
	if plain, _, err := all.Open(t.Context(), "/registry/ranges/x", []byte("text")); err != nil || string(plain) != "text" {
		t.Errorf("an unencrypted value that is not an object: %q, %v", plain, err)
	}
	if stored, err := all.Seal(t.Context(), "/registry/ranges/x", []byte("text")); err != nil || string(stored) != "text" {
		t.Errorf("a value that is not an object is stored as %q, %v", stored, err)
	}
}

func TestRotation(t *testing.T) {
	seal := func(lines ...string) []byte {
		sealed, err := mustTransformer(t, providers(lines...)).Seal(t.Context(), place, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	first := seal(keysOf("aesgcm", "a", key16))
	rotated := mustTransformer(t, providers(keysOf("aesgcm", "b", key32, "a", key16), "identity: {}"))
	if plain, stale, err := rotated.Open(t.Context(), place, first); err != nil || !stale || string(plain) != "text" {
		t.Errorf("by the old key: %q, stale %v, %v", plain, stale, err)
	}
	switchedOff := mustTransformer(t, providers("identity: {}", keysOf("aesgcm", "a", key16)))
	if plain, stale, err := switchedOff.Open(t.Context(), place, first); err != nil || !stale || string(plain) != "text" {
		t.Errorf("on the way out: %q, stale %v, %v", plain, stale, err)
	}
	if sealed, err := switchedOff.Seal(t.Context(), place, []byte("text")); err != nil || string(sealed) != "text" {
		t.Errorf("identity first: %q, %v", sealed, err)
	}
	for name, lines := range map[string][]string{
		"two keys of a name":   {keysOf("aesgcm", "a", other, "a", key16)},
		"and in two providers": {keysOf("aesgcm", "a", other), keysOf("aesgcm", "a", key16)},
	} {
		if plain, stale, err := mustTransformer(t, providers(lines...)).Open(t.Context(), place, first); err != nil || !stale || string(plain) != "text" {
			t.Errorf("%s: %q, stale %v, %v", name, plain, stale, err)
		}
	}
	for name, lines := range map[string][]string{
		"no such key": {keysOf("aesgcm", "b", key16)}, "only identity": {"identity: {}"}, "same name, other key": {keysOf("aesgcm", "a", other)},
	} {
		if plain, _, err := mustTransformer(t, providers(lines...)).Open(t.Context(), place, first); err == nil {
			t.Errorf("%s: opened %q", name, plain)
		}
	}
	if _, _, err := mustTransformer(t, providers(keysOf("aesgcm", "a", key16))).Open(t.Context(), place, []byte("{}")); err == nil {
		t.Error("a plain value was taken without the provider identity")
	}
}

func TestWhichResources(t *testing.T) {
	tr := mustTransformer(t, "- {resources: [services], providers: [identity: {}]}\n- {resources: ['*.apps'], providers: ["+keysOf("secretbox", "apps", key32)+
		"]}\n- {resources: ['*.'], providers: ["+
		keysOf("secretbox", "core", key32)+"]}\n- {resources: ['*.*'], providers: ["+keysOf("secretbox", "all", key32)+"]}\n")
	for at, want := range map[string]string{
		place:                          "k8s:enc:secretbox:v1:core:",
		"/registry/deployments/a/d":    "k8s:enc:secretbox:v1:apps:",
		"/registry/services/specs/a/s": "text",
	} {
		if sealed, err := tr.Seal(t.Context(), at, []byte("text")); err != nil || !strings.HasPrefix(string(sealed), want) {
			t.Errorf("%s: %q, %v", at, sealed, err)
		}
	}
	if plain, _, err := mustTransformer(t, providers(keysOf("aescbc", "a", key16))).Open(t.Context(), "/registry/pods/a/p", []byte("{}")); err != nil ||
		string(plain) != "{}" {
		t.Errorf("a resource that is not encrypted: %q %v", plain, err)
	}
}

// TestTwoEntriesOfAResource: the first one's first provider seals, and all of both can open.
func TestTwoEntriesOfAResource(t *testing.T) {
	sealed, err := mustTransformer(t, providers(keysOf("secretbox", "b", key32))).Seal(t.Context(), place, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	both := mustTransformer(t, providers(keysOf("aesgcm", "a", key16))+providers(keysOf("secretbox", "b", key32), "identity: {}"))
	for _, stored := range [][]byte{sealed, []byte("text")} {
		if plain, stale, err := both.Open(t.Context(), place, stored); err != nil || !stale || string(plain) != "text" {
			t.Errorf("%q: %q, stale %v, %v", stored, plain, stale, err)
		}
	}
	if sealed, err = both.Seal(t.Context(), place, []byte("text")); err != nil || !bytes.HasPrefix(sealed, []byte("k8s:enc:aesgcm:v1:a:")) {
		t.Errorf("%q, %v", sealed, err)
	}
}

// TestOperationsAreCounted: by resource, direction and provider, and by key as upstream's.
func TestOperationsAreCounted(t *testing.T) {
	tr := mustTransformer(t, providers(keysOf("aesgcm", "a", key16), "identity: {}")+"- {resources: [deployments.apps], providers: [identity: {}]}\n")
	sealed, err := tr.Seal(t.Context(), place, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{string(sealed), "text", "k8s:enc:aesgcm:v1:a:x", "k8s:enc:rot13:v1:a:x", "k8s:enc:aesgcm:v1:lost:x"} {
		_, _, _ = tr.Open(t.Context(), place, []byte(stored))
	}
	if _, err := tr.Seal(t.Context(), "/registry/deployments/a/d", []byte("text")); err != nil {
		t.Fatal(err)
	}
	const other = "unknown-non-grpc"
	for want, rows := range map[float64][][]string{
		1: {
			{"secrets", toStorage, "k8s:enc:aesgcm:v1:", "OK"}, {"secrets", toStorage, "a:", "OK"}, {"deployments.apps", toStorage, "", "OK"},
			{"secrets", fromStorage, "k8s:enc:aesgcm:v1:", "OK"}, {"secrets", fromStorage, "a:", "OK"}, {"secrets", fromStorage, "identity", "OK"},
			{"secrets", fromStorage, "a:", other},
		},
		2: {{"secrets", fromStorage, "k8s:enc:aesgcm:v1:", other}, {"secrets", fromStorage, "unknown", other}}, // one for the lost key
	} {
		for _, labels := range rows {
			if n := testutil.ToFloat64(tr.metrics.operations.WithLabelValues(labels...)); n != want {
				t.Errorf("%v: %v", labels, n)
			}
		}
	}
	if n := testutil.CollectAndCount(tr.metrics.operations); n != 9 {
		t.Errorf("%d metrics", n)
	}
}

// TestKeysOfOneName: AES-CBC can't tell that a key is the wrong one; one of 256 values seems to
// be opened by it.
func TestKeysOfOneName(t *testing.T) {
	object := []byte(`{"kind":"Secret"}`)
	before := mustTransformer(t, providers(keysOf("aescbc", "a", key16)))
	after := mustTransformer(t, providers(keysOf("aescbc", "a", other, "a", key16)))
	for i := range 4000 {
		sealed, err := before.Seal(t.Context(), place, object)
		if err != nil {
			t.Fatal(err)
		}
		if plain, stale, err := after.Open(t.Context(), place, sealed); err != nil || !stale || !bytes.Equal(plain, object) {
			t.Fatalf("value %d: %q, stale %v, %v", i, plain, stale, err)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for resources, want := range map[string]string{
		"":                         "resources: none",
		"- {resources: [secrets]}": "needs resources and providers",
		providers("{identity: {}, aescbc: {keys: []}}"):                                  "exactly one",
		providers("aescbc: {keys: []}"):                                                  "none is given",
		providers(keysOf("aescbc", "''", key16)):                                         "must be given",
		providers(keysOf("secretbox", "a", key16)):                                       "has 16 bytes",
		providers(keysOf("aesgcm", "a", "c2hvcnQ=")):                                     "has 5 bytes",
		providers(keysOf("aesgcm", "a", "'!'")):                                          "not base64",
		providers("kms: {name: a, endpoint: 'unix:///a'}"):                               "kms v1 is not supported",
		providers("kms: {apiVersion: v2, name: a, endpoint: 'tcp://a'}"):                 "unix:///PATH",
		providers("kms: {apiVersion: v2, name: a, endpoint: 'unix:///a', cachesize: 3}"): "kms v1 only",
		"- {resources: ['*'], providers: [identity: {}]}":                                "use *.*",
		"- {resources: ['*.*', secrets], providers: [identity: {}]}":                     "leaves nothing",
		"- {resources: ['*.', secrets], providers: [identity: {}]}":                      "leaves nothing",
		"- {resources: [secrets, secrets], providers: [identity: {}]}":                   "leaves nothing",
		"- {resources: [secrets, '*.'], providers: [identity: {}]}":                      "covers secrets",
		providers("identity: {}") + "- {resources: ['*.'], providers: [identity: {}]}\n- {resources: [pods], providers: [identity: {}]}": "leaves nothing",
		"- {resources: ['*.apps'], providers: [identity: {}]}\n- {resources: ['*.apps'], providers: [identity: {}]}":                     "leaves nothing",
		"- {resources: ['pod*'], providers: [identity: {}]}":                                                                             "wildcards",
		"- {resources: [events.events.k8s.io], providers: [identity: {}]}":                                                               "are stored as events",
		"- {resources: ['*.events.k8s.io'], providers: [identity: {}]}":                                                                  "are stored as events",
		"- {resources: [ingresses.extensions], providers: [identity: {}]}":                                                               "has been removed",
		"- {resources: [serviceipallocations], providers: [identity: {}]}":                                                               "cannot be encrypted",
		"- {resources: [secrets], providers: [rot13: {}]}":                                                                               "unknown",
	} {
		if _, err := transformer(t, resources); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", resources, err, want)
		} else if strings.Contains(err.Error(), key16) {
			t.Errorf("%s: a secret is in the error: %v", resources, err)
		}
	}
}

// TestReload: a changed file is in force after a minute; one that can't be is logged once, and nothing
// of it counts.
func TestReload(t *testing.T) {
	tr, now := mustTransformer(t, providers(keysOf("aesgcm", "a", key16))), testingclock.NewFakeClock(time.Unix(1000, 0))
	core, lines := observer.New(zapcore.ErrorLevel)
	tr.clock, tr.file.Clock, tr.file.Logger = now, now, zap.New(core)
	sealedBy := func() string {
		sealed, err := tr.Seal(t.Context(), place, nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(sealed), ":")[4]
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx, true) }()
	defer func() { cancel(); <-done }()
	look := func() {
		eventually.Holds(t, "the file is watched", now.HasWaiters)
		now.Step(reloadInterval)
	}
	for n, broken := range []string{"nonsense: {}", kmsOf(&service{endpoint: "unix:///no/such/socket"}, "a")} {
		write(t, tr.file.Path, providers(broken))
		eventually.Holds(t, "it is refused", func() bool { look(); return lines.Len() > n })
		look()
	}
	if by := sealedBy(); by != "a" {
		t.Errorf("the old configuration is gone: sealed by %s", by)
	}
	write(t, tr.file.Path, providers(keysOf("aesgcm", "b", key16)))
	eventually.Holds(t, "the new one is in force", func() bool { look(); return sealedBy() == "b" })
	if n := lines.Len(); n != 2 {
		t.Errorf("%d lines of failures: %v", n, lines.All())
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("k8s:enc:kms:v2:mine:\x0a\x01x"))
	f.Add([]byte("k8s:enc:aesgcm:v1:a:"))
	f.Add([]byte("k8s:enc:"))
	for _, line := range []string{keysOf("aesgcm", "a", key16), keysOf("aescbc", "b", key16), keysOf("secretbox", "c", key32)} {
		sealed, err := mustTransformer(f, providers(line)).Seal(context.Background(), place, []byte("text"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sealed)
	}
	tr := mustTransformer(f, providers(keysOf("aesgcm", "a", key16), keysOf("aescbc", "b", key16), keysOf("secretbox", "c", key32),
		kmsOf(&service{endpoint: "unix:///no/such/socket"}, "mine"), "identity: {}"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		plain, _, err := tr.Open(context.Background(), place, stored)
		if err == nil && bytes.HasPrefix(stored, []byte(sealedPrefix)) && bytes.Equal(plain, stored) {
			t.Errorf("a sealed value was handed out as it is: %q", stored)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("data"), "1", []byte("sealed"), "note", []byte("n"))
	f.Fuzz(func(t *testing.T, data []byte, id string, sealed []byte, name string, note []byte) {
		in := &seed{keyID: id, sealed: sealed, source: sourceSeed, annotations: map[string][]byte{name: note}}
		if in.check() != nil {
			return
		}
		out, got, err := parseEnvelope(in.envelope(data))
		if err != nil || !bytes.Equal(got, data) || out.keyID != id || !bytes.Equal(out.sealed, sealed) || !bytes.Equal(out.annotations[name], note) ||
			out.digest() != in.digest() {
			t.Errorf("%v: %+v, want %+v", err, out, in)
		}
	})
}
