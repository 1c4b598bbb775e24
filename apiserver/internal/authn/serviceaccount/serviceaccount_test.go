package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/authn"
	"kctl/proto/clientauth"
	"kctl/proto/core"
)

const testIssuer = "https://kubernetes.default.svc"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type objects map[string]metav1.Object

func find[T metav1.Object](o objects, kind, namespace, name string) (T, error) {
	if obj, ok := o[kind+"/"+namespace+"/"+name]; ok {
		return obj.(T), nil
	}
	var none T
	return none, apierrors.NewNotFound(corev1.Resource(kind), name)
}

func (o objects) ServiceAccount(_ context.Context, namespace, name string) (*core.ServiceAccount, error) {
	return find[*core.ServiceAccount](o, "serviceaccounts", namespace, name)
}
func (o objects) Pod(_ context.Context, namespace, name string) (*core.Pod, error) {
	return find[*core.Pod](o, "pods", namespace, name)
}
func (o objects) Secret(_ context.Context, namespace, name string) (*core.Secret, error) {
	return find[*core.Secret](o, "secrets", namespace, name)
}
func (o objects) TokenUsed(_ context.Context, secret *core.Secret, date string) {
	metav1.SetMetaDataLabel(&secret.ObjectMeta, LastUsed, date)
}
func (o objects) Node(_ context.Context, name string) (*core.Node, error) {
	return find[*core.Node](o, "nodes", "", name)
}

func meta(namespace, name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}
}

type fixture struct {
	clock         *testingclock.FakePassiveClock
	registry      *prometheus.Registry
	uses          *Uses
	key           crypto.Signer
	issuer        *Issuer
	checks        Checks
	authenticator *Authenticator
	objects       objects
	sa            *core.ServiceAccount
	pod           *core.Pod
	node          *core.Node
}

func newFixture(t *testing.T, key crypto.Signer) *fixture {
	t.Helper()
	f := &fixture{
		clock: testingclock.NewFakePassiveClock(start), registry: prometheus.NewRegistry(),
		key:  key,
		sa:   &core.ServiceAccount{ObjectMeta: meta("shop", "web", "sa-1")},
		pod:  &core.Pod{ObjectMeta: meta("shop", "web-0", "pod-1")},
		node: &core.Node{ObjectMeta: meta("", "n1", "node-1")},
	}
	f.objects = objects{"serviceaccounts/shop/web": f.sa, "pods/shop/web-0": f.pod, "nodes//n1": f.node}
	f.uses = NewUses(f.registry)
	var err error
	if f.issuer, err = NewIssuer(testIssuer, []string{testIssuer}, key, f.clock); err != nil {
		t.Fatal(err)
	}
	public, err := newPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	f.checks = Checks{Audiences: []string{testIssuer}, Keys: []PublicKey{public}, Objects: f.objects, Uses: f.uses, Clock: f.clock}
	f.authenticator = NewAuthenticator([]string{testIssuer}, f.checks)
	return f
}

// legacyChecks are the checks for tokens in secrets.
func (f *fixture) legacyChecks() Checks {
	checks := f.checks
	checks.Audiences = []string{"api"}
	return checks
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (f *fixture) token(t *testing.T, spec authenticationv1.TokenRequestSpec, bound Bound) string {
	t.Helper()
	token, _, err := f.issuer.Token(t.Context(), f.sa, spec, bound)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokenRoundTrip(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"RS256": rsaKey(t), "ES256": ecKey(t)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, key)
			token := f.token(t, authenticationv1.TokenRequestSpec{}, Bound{Pod: f.pod, Node: f.node})
			user, audiences, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil)
			if err != nil || !ok {
				t.Fatalf("ok=%v err=%v", ok, err)
			}
			if user.Username != "system:serviceaccount:shop:web" || user.UID != "sa-1" {
				t.Errorf("user is %s (%s)", user.Username, user.UID)
			}
			if strings.Join(user.Groups, ",") != "system:serviceaccounts,system:serviceaccounts:shop" {
				t.Errorf("groups are %v", user.Groups)
			}
			if len(audiences) != 1 || audiences[0] != testIssuer {
				t.Errorf("audiences are %v", audiences)
			}
			if id := user.Extra[clientauth.ExtraCredentialID]; len(id) != 1 || !strings.HasPrefix(id[0], "JTI=") || len(id[0]) < 20 {
				t.Errorf("the token's name is %v", id)
			}
			for key, want := range map[string]string{extraPodName: "web-0", extraPodUID: "pod-1", authn.ExtraNodeName: "n1", extraNodeUID: "node-1"} {
				if got := user.Extra[key]; len(got) != 1 || got[0] != want {
					t.Errorf("extra %s is %v, want %s", key, got, want)
				}
			}
		})
	}
}

func TestDeletedPodKeepsItsTokenForAWhile(t *testing.T) {
	f := newFixture(t, ecKey(t))
	token := f.token(t, authenticationv1.TokenRequestSpec{}, Bound{Pod: f.pod})
	f.pod.DeletionTimestamp = &metav1.Time{Time: start.Add(-deletedLeeway + time.Second)}
	if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil); !ok || err != nil {
		t.Errorf("ok=%v err=%v", ok, err)
	}
}

func TestExtendedLifetime(t *testing.T) {
	f := newFixture(t, ecKey(t))
	seconds := int64(warnOnlyLifetime / time.Second)
	spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}
	token, expiry, err := f.issuer.Token(t.Context(), f.sa, spec, Bound{Pod: f.pod})
	if err != nil {
		t.Fatal(err)
	}
	if !expiry.Equal(start.Add(warnOnlyLifetime)) {
		t.Errorf("the client was given the expiry %v", expiry)
	}
	ordinary := f.token(t, authenticationv1.TokenRequestSpec{}, Bound{Pod: f.pod}) // counted as neither, as upstream
	for _, fresh := range []string{token, ordinary} {
		if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), fresh, nil); !ok || err != nil {
			t.Errorf("at once: ok=%v err=%v", ok, err)
		}
	}
	f.clock.SetTime(start.Add(24 * time.Hour))
	if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil); !ok || err != nil {
		t.Errorf("a day later: ok=%v err=%v", ok, err)
	}
	if valid, stale := f.count(t, "valid_tokens"), f.count(t, "stale_tokens"); valid != 1 || stale != 1 {
		t.Errorf("counted as valid %g times, as stale %g times", valid, stale)
	}
}

// Only what a kubelet asks for on behalf of a pod's program lives for longer than it says.
func TestOtherLifetimesAreKept(t *testing.T) {
	f := newFixture(t, ecKey(t))
	warnOnly, other := int64(warnOnlyLifetime/time.Second), int64(warnOnlyLifetime/time.Second)+1
	if warnOnly != 3607 {
		t.Errorf("kubelets ask for 3607 s, not for %d", warnOnly)
	}
	for name, test := range map[string]struct {
		seconds *int64
		bound   Bound
	}{
		"of no pod": {&warnOnly, Bound{}}, "of a node": {&warnOnly, Bound{Node: f.node}}, "of a pod, for another time": {&other, Bound{Pod: f.pod}},
	} {
		f.clock.SetTime(start)
		token := f.token(t, authenticationv1.TokenRequestSpec{ExpirationSeconds: test.seconds}, test.bound)
		f.clock.SetTime(start.Add(24 * time.Hour))
		if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil); ok || err == nil {
			t.Errorf("%s: a day later it is good", name)
		}
	}
}

func TestKeysFromFiles(t *testing.T) {
	dir := t.TempDir()
	rsaPrivate, ecPrivate := rsaKey(t), ecKey(t)
	ecDER, err := x509.MarshalECPrivateKey(ecPrivate)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaPrivate)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(rsaPrivate.Public())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, blocks ...*pem.Block) string {
		var data []byte
		for _, block := range blocks {
			data = append(data, pem.EncodeToMemory(block)...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both := write("both.pem", &pem.Block{Type: "PUBLIC KEY", Bytes: public}, &pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6}},
		&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER})
	private := write("private.pem", &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	empty := write("empty.pem")

	keys, err := LoadPublicKeys([]string{both, private})
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 3 || keys[0].ID != keys[2].ID || keys[0].ID == keys[1].ID {
		t.Errorf("keys are %+v", keys)
	}
	if _, err := LoadPublicKeys([]string{empty}); err == nil {
		t.Error("a file without keys was taken")
	}
	if _, err := LoadSigningKey(private); err != nil {
		t.Error(err)
	}
	onlyPublic := write("public.pem", &pem.Block{Type: "PUBLIC KEY", Bytes: public})
	if _, err := LoadSigningKey(onlyPublic); err == nil {
		t.Error("a public key was taken for signing")
	}
}
