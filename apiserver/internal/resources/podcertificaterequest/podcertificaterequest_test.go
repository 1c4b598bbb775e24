package podcertificaterequest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func signed(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func elliptical(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func asked(request []byte, change func(*certificatesv1.PodCertificateRequestSpec)) *certificatesv1.PodCertificateRequest {
	r := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{
		SignerName: "a.b/c", PodName: "p", PodUID: "u", ServiceAccountName: "s", ServiceAccountUID: "u", NodeName: "n", NodeUID: "u",
		MaxExpirationSeconds: new(int32(defaultExpirationSeconds)), StubPKCS10Request: request,
	}}
	if change != nil {
		change(&r.Spec)
	}
	return r
}

func expect(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n"), want)
	}
}

// The words are kube-apiserver v1.37.0's.
func TestSpec(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := signed(t, elliptical(t, elliptic.P256()))
	forged := append([]byte{}, good...)
	forged[len(forged)-1] ^= 1
	lasts := func(signer string, seconds int32) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(s *certificatesv1.PodCertificateRequestSpec) {
			s.SignerName, s.MaxExpirationSeconds = signer, &seconds
		}
	}
	for what, c := range map[string]struct {
		request []byte
		change  func(*certificatesv1.PodCertificateRequestSpec)
		want    string
	}{
		"elliptic": {good, nil, ""},
		"Edwards":  {signed(t, edwards), nil, ""},
		"another curve": {signed(t, elliptical(t, elliptic.P224())), nil,
			`spec.stubPKCS10Request: Invalid value: "curve P-224": elliptic public keys must use curve P256, P384, or P521`},
		"a short key":     {signed(t, small), nil, `spec.stubPKCS10Request: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096`},
		"none":            {nil, nil, "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"},
		"no request":      {[]byte("hello"), nil, "spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"},
		"forged":          {forged, nil, "spec.stubPKCS10Request: Invalid value: invalid signature"},
		"huge":            {make([]byte, maxRequest+1), nil, "spec.stubPKCS10Request: Too long: may not be more than 10240 bytes"},
		"short":           {good, lasts("a.b/c", 3599), "spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"},
		"long":            {good, lasts("a.b/c", 7862400), ""},
		"long of its own": {good, lasts("kubernetes.io/x", 86401), "spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"},
		"identities": {good, func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID, s.NodeUID = "", "u" },
			`spec.podUID: Invalid value: "": must not be empty`},
		"annotations": {good, func(s *certificatesv1.PodCertificateRequestSpec) {
			s.UnverifiedUserAnnotations = map[string]string{"foo": "", "A.B/c": ""}
		}, `spec.unverifiedUserAnnotations: Invalid value: "foo": must be a domain-prefixed key (such as "acme.io/foo")`},
	} {
		expect(t, what, validateSpec(&asked(c.request, c.change).Spec), c.want)
	}
}

func certificate(t *testing.T, key *ecdsa.PrivateKey, begin time.Time, lasts time.Duration) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(lasts)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func answer(kinds ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, kind := range kinds {
		out = append(out, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(now)})
	}
	return out
}

func issued(chain string, begin, end, refresh time.Time) certificatesv1.PodCertificateRequestStatus {
	return certificatesv1.PodCertificateRequestStatus{
		Conditions: answer("Issued"), CertificateChain: chain, NotBefore: new(metav1.NewTime(begin)),
		NotAfter: new(metav1.NewTime(end)), BeginRefreshAt: new(metav1.NewTime(refresh)),
	}
}

func TestStatus(t *testing.T) {
	key := elliptical(t, elliptic.P256())
	r := asked(signed(t, key), nil)
	good := certificate(t, key, now, 2*time.Hour)
	end, middle := now.Add(2*time.Hour), now.Add(time.Hour)
	early := now.Add(-6 * time.Minute)
	type status = certificatesv1.PodCertificateRequestStatus
	for what, c := range map[string]struct {
		old, now status
		want     string
	}{
		"issued":      {status{}, issued(good, now, end, middle), ""},
		"denied":      {status{}, status{Conditions: answer("Denied")}, ""},
		"nothing new": {status{}, status{}, ""},
		"two answers": {status{}, status{Conditions: answer("Denied", "Failed")},
			`status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type "Issued", "Denied", or "Failed"`},
		"another condition": {status{}, status{Conditions: answer("Foo")},
			`status.conditions.[0].type: Unsupported value: "Foo": supported values: "Issued", "Denied", "Failed"`},
		"a chain alone": {status{}, status{CertificateChain: good},
			`status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"`},
		"denied and issued": {status{}, status{CertificateChain: good, Conditions: answer("Denied")},
			"status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest"},
		"answered before": {status{Conditions: answer("Denied")}, status{Conditions: answer("Failed")},
			"status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"},
		"no chain": {status{}, status{Conditions: answer("Issued")},
			`status.certificateChain: Invalid value: "": issued certificate chain must contain at least one certificate`},
		"no times": {status{}, status{CertificateChain: good, Conditions: answer("Issued")},
			"status.notBefore: Required value: must be present and consistent with the issued certificate\n" +
				"status.notAfter: Required value: must be present and consistent with the issued certificate\n" +
				"status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]"},
		"another end": {status{}, issued(good, now, middle, middle),
			`status.notAfter: Invalid value: "2026-11-21T13:00:00Z": must be set to the NotAfter time encoded in the leaf certificate`},
		"late refresh": {status{}, issued(good, now, end, end),
			`status.beginRefreshAt: Invalid value: "2026-11-21T14:00:00Z": must be at least 10 minutes before status.notAfter`},
		"long ago": {status{}, issued(certificate(t, key, early, time.Hour), early, early.Add(time.Hour), now.Add(time.Minute*20)),
			`status.notBefore: Invalid value: "2026-11-21T11:54:00Z": must be set to within 5 minutes of kube-apiserver's current time`},
		"too short": {status{}, issued(certificate(t, key, now, 59*time.Minute), now, now.Add(59*time.Minute), now.Add(30*time.Minute)),
			"status.certificateChain: Invalid value: 3540000000000: leaf certificate lifetime must be >= 1 hour"},
		"too long": {status{}, issued(certificate(t, key, now, 25*time.Hour), now, now.Add(25*time.Hour), middle),
			"status.certificateChain: Invalid value: 90000000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)"},
	} {
		is, was := r.DeepCopy(), r.DeepCopy()
		is.Status, was.Status = c.now, c.old
		expect(t, what, validateStatus(is, was, now), c.want)
	}
	stranger := certificate(t, elliptical(t, elliptic.P256()), now, 2*time.Hour)
	for chain, want := range map[string]string{
		stranger: "leaf certificate was not issued to the requested public key",
		strings.ReplaceAll(good, "CERTIFICATE", "PRIVATE KEY"):                  "issued certificate chain must consist entirely of CERTFICATE PEM blocks",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n":        "leaf certificate does not parse as valid X.509",
		good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "intermediate certificate does not parse as valid X.509",
		good + "between\n" + stranger:                                           "",
	} {
		is := r.DeepCopy()
		is.Status = issued(chain, now, end, middle)
		errs := validateStatus(is, r, now)
		if got := errs.ToAggregate(); want == "" && got != nil || want != "" && (got == nil || !strings.HasSuffix(got.Error(), want)) {
			t.Errorf("chain: got %v, want %q", got, want)
		}
	}
}
