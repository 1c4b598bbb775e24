package certificatesigningrequest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/request"
	"kctl/proto/pki"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func signed(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// signedBy is a request that claims an RSA signature of that many bits.
func signedBy(t *testing.T, bits uint) []byte {
	t.Helper()
	modulus := new(big.Int).Lsh(big.NewInt(1), bits-1)
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus.Add(modulus, big.NewInt(1)), E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	type content struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0"`
	}
	der, err := asn1.Marshal(struct {
		Content   content
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		content{Subject: asn1.RawValue{FullBytes: []byte{0x30, 0}}, Key: asn1.RawValue{FullBytes: key}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue}, // SHA-256 with RSA
		asn1.BitString{Bytes: []byte{1}, BitLength: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	return block(requestPEMType, der)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestValidate has upstream's words, as its 1.37 server answered.
func TestValidate(t *testing.T) {
	der := signed(t)
	forged := append([]byte(nil), der...)
	forged[len(forged)-3] ^= 0xff
	good := block(requestPEMType, der)
	for name, test := range map[string]struct {
		request []byte
		signer  string
		usages  string
		seconds *int32
		want    string
	}{
		"good":           {good, "a.b/c", "client auth", new(int32(600)), ""},
		"of the cluster": {good, "kubernetes.io/kubelet-serving", "server auth", nil, ""},
		"another block": {block("EC PRIVATE KEY", der), "a.b/c", "client auth", nil,
			"spec.request: Invalid value: X: PEM block type must be CERTIFICATE REQUEST"},
		"no block":       {nil, "a.b/c", "client auth", nil, "spec.request: Invalid value: X: PEM block type must be CERTIFICATE REQUEST"},
		"rubbish":        {block(requestPEMType, []byte("foo")), "a.b/c", "client auth", nil, "spec.request: Invalid value: X: asn1: structure error"},
		"forged":         {block(requestPEMType, forged), "a.b/c", "client auth", nil, "spec.request: Invalid value: X: x509: ECDSA verification failure"},
		"a long key":     {signedBy(t, 16384), "a.b/c", "client auth", nil, "spec.request: Invalid value: X: crypto/rsa: verification error"},
		"too long a key": {signedBy(t, 16385), "a.b/c", "client auth", nil, "spec.request: Invalid value: X: RSA keys of more than 16384 bits are not supported"},
		"no usage, signer": {good, "a.b/c/d", "", nil,
			"[spec.usages: Required value, spec.signerName: Invalid value: \"a.b/c/d\": must be a fully qualified domain and path of the " +
				"form 'example.com/signer-name']"},
		"no signer": {good, "", "client auth", nil, "spec.signerName: Required value"},
		"one label": {good, "foo/bar", "client auth", nil,
			"spec.signerName: Invalid value: \"foo\": should be a domain with at least two segments separated by dots"},
		"capitals": {good, "A.b/C", "client auth", nil,
			"[spec.signerName: Invalid value: \"A.b\": validating label \"A\": RFC, spec.signerName: Invalid value: \"C\": validating label \"C\": RFC"},
		"old": {good, certificatesv1beta1.LegacyUnknownSignerName, "client auth", nil,
			"spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version"},
		"long": {good, strings.Repeat(strings.Repeat("c", 60)+".", 5) + "c/x", "client auth", nil,
			"spec.signerName: Too long: may not be more than 253 bytes"},
		"twice":         {good, "a.b/c", "client auth,client auth", nil, "spec.usages[1]: Duplicate value: \"client auth\""},
		"another usage": {good, "a.b/c", "foo", nil, "spec.usages[0]: Unsupported value: \"foo\": supported values: \"any\", \"cert sign\","},
		"for a short while": {good, "a.b/c", "client auth", new(int32(599)),
			"spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: test.request, SignerName: test.signer, ExpirationSeconds: test.seconds,
			}}
			for usage := range strings.SplitSeq(test.usages, ",") {
				if usage != "" {
					r.Spec.Usages = append(r.Spec.Usages, certificatesv1.KeyUsage(usage))
				}
			}
			got := ""
			if err := validate(r).ToAggregate(); err != nil {
				got = regexp.MustCompile(`(spec.request: Invalid value: )("[^"]*"|null)`).ReplaceAllString(err.Error(), "${1}X")
				got = regexp.MustCompile(`a lowercase RFC 1123 .*?'\)(, |\]|$)`).ReplaceAllString(got, "RFC$1")
			}
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWhoAsksIsSet(t *testing.T) {
	r := &certificatesv1.CertificateSigningRequest{
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: "root", UID: "0", Groups: []string{"system:masters"}, Extra: map[string]certificatesv1.ExtraValue{"k": {"forged"}},
		},
		Status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("x"), Conditions: conditions("Approved=True")},
	}
	setRequester(request.WithUser(t.Context(), &request.User{
		Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}), r)
	if r.Spec.Username != "jane" || r.Spec.UID != "7" || r.Spec.Groups[0] != "dev" || r.Spec.Extra["k"][0] != "v" || len(r.Status.Conditions) > 0 ||
		r.Status.Certificate != nil {
		t.Errorf("%+v", r)
	}
	if setRequester(t.Context(), r); r.Spec.Username != "" || r.Spec.Groups != nil || r.Spec.Extra != nil {
		t.Errorf("%+v", r.Spec)
	}
}

// conditions parses "TYPE=STATUS TYPE=STATUS".
func conditions(text string) (out []certificatesv1.CertificateSigningRequestCondition) {
	for word := range strings.FieldsSeq(text) {
		kind, status, _ := strings.Cut(word, "=")
		var c certificatesv1.CertificateSigningRequestCondition
		if err := yaml.Unmarshal(fmt.Appendf(nil, "{type: %q, status: %q}", kind, status), &c); err != nil {
			panic(err)
		}
		out = append(out, c)
	}
	return out
}

func TestDecisions(t *testing.T) {
	for _, test := range []struct{ old, new, way, want string }{
		{"", "Approved=True", "approval", ""},
		{"", "Denied=True", "approval", ""},
		{"Approved=True", "Denied=True", "approval", `status.conditions: Forbidden: updates may not remove a condition of type "Approved"`},
		{"Denied=True", "", "approval", `status.conditions: Forbidden: updates may not remove a condition of type "Denied"`},
		{"", "Approved=False", "approval", `status.conditions[0].status: Unsupported value: "False": supported values: "True"`},
		{"", "Approved=", "approval", "status.conditions[0].status: Required value"},
		{"", "=True", "approval", "status.conditions[0].type: Required value"},
		{"", "Own=False", "approval", ""},
		{"Failed=True", "Approved=True Approved=True", "approval",
			`[status.conditions[1].type: Duplicate value: "Approved", status.conditions: Forbidden: updates may not remove a condition of type "Failed"]`},
		{"", "Approved=True Denied=True", "approval",
			"status.conditions: Invalid value: \"{conditions[{\\\"type\\\": \\\"Approved\\\"}], conditions[{\\\"type\\\": \\\"Denied\\\"}]}\": must specify at most " +
				"one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"},
		{"", "Approved=True", "status", `status.conditions: Forbidden: updates may not add a condition of type "Approved"`},
		{"", "Failed=True Own=Unknown", "status", ""},
		{"Approved=True", "", "status", `status.conditions: Forbidden: updates may not remove a condition of type "Approved"`},
		{"Approved=True", "Approved=True Failed=True", "status", ""},
	} {
		old := &certificatesv1.CertificateSigningRequest{Status: certificatesv1.CertificateSigningRequestStatus{Conditions: conditions(test.old)}}
		r := &certificatesv1.CertificateSigningRequest{Status: certificatesv1.CertificateSigningRequestStatus{Conditions: conditions(test.new)}}
		errs := validateStatus(t.Context(), r, old)
		if test.way == "approval" {
			errs = validateApproval(t.Context(), r, old)
		}
		got := ""
		if err := errs.ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q to %q by %s\n got %s\nwant %s", test.old, test.new, test.way, got, test.want)
		}
	}
}

func TestCertificates(t *testing.T) {
	pair, err := pki.NewCA("x", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	headed := pem.EncodeToMemory(&pem.Block{Type: certificatePEMType, Headers: map[string]string{"a": "b"}, Bytes: []byte("x")})
	for name, test := range map[string]struct {
		old, new []byte
		want     string
	}{
		"one":          {nil, pair.Cert, ""},
		"two":          {nil, append(append([]byte("text\n"), pair.Cert...), pair.Cert...), ""},
		"none":         {nil, []byte("foo"), `status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block`},
		"a key":        {nil, pair.Key, `status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"`},
		"headers":      {nil, headed, `status.certificate: Invalid value: "<certificate data>": no PEM block headers are permitted`},
		"rubbish":      {nil, block(certificatePEMType, []byte("foo")), `status.certificate: Invalid value: "<certificate data>": x509: malformed certificate`},
		"taken away":   {pair.Cert, nil, "status.certificate: Forbidden: updates may not modify existing certificate content"},
		"another one":  {pair.Cert, append([]byte("\n"), pair.Cert...), "status.certificate: Forbidden: updates may not modify existing certificate content"},
		"the same one": {pair.Cert, pair.Cert, ""},
	} {
		old, r := &certificatesv1.CertificateSigningRequest{}, &certificatesv1.CertificateSigningRequest{}
		old.Status.Certificate, r.Status.Certificate = test.old, test.new
		got := ""
		if err := validateStatus(t.Context(), r, old).ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", name, got, test.want)
		}
	}
}

// TestWays: what each way of changing a request may not change.
func TestWays(t *testing.T) {
	s := strategy(testingclock.NewFakePassiveClock(now))
	old := &certificatesv1.CertificateSigningRequest{
		Spec:   certificatesv1.CertificateSigningRequestSpec{SignerName: "a.b/c", Username: "jane"},
		Status: certificatesv1.CertificateSigningRequestStatus{Conditions: conditions("Approved=True")},
	}
	old.Status.Conditions[0].Reason, old.Status.Conditions[0].LastTransitionTime = "first", metav1.NewTime(now.Add(-time.Hour))
	changed := func(prepare func(context.Context, *certificatesv1.CertificateSigningRequest,
		*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{
			Spec:   certificatesv1.CertificateSigningRequestSpec{SignerName: "x.y/z", Username: "root"},
			Status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("new"), Conditions: conditions("Approved=True Failed=True")},
		}
		r.Status.Conditions[0].Reason = "second"
		prepare(t.Context(), r, old)
		if r.Spec.SignerName != "a.b/c" || r.Spec.Username != "jane" {
			t.Errorf("the spec is now %+v", r.Spec)
		}
		return r
	}
	if r := changed(s.Update.Prepare); r.Status.Certificate != nil || len(r.Status.Conditions) != 1 {
		t.Errorf("an update changed the status: %+v", r.Status)
	}
	if r := changed(s.Status.Prepare); string(r.Status.Certificate) != "new" || r.Status.Conditions[0].Reason != "first" ||
		!r.Status.Conditions[1].LastUpdateTime.Time.Equal(now) {
		t.Errorf("by /status: %+v", r.Status)
	}
	r := changed(s.Subresources[Approval].Prepare)
	if c := r.Status.Conditions[0]; r.Status.Certificate != nil || c.Reason != "second" || !c.LastUpdateTime.Time.Equal(now) ||
		!c.LastTransitionTime.Time.Equal(now.Add(-time.Hour)) {
		t.Errorf("by /approval: %+v", r.Status)
	}
}

func TestTable(t *testing.T) {
	for conditionsText, want := range map[string]string{
		"": "Pending", "Approved=True": "Approved", "Denied=True": "Denied", "Failed=True": "Pending,Failed",
		"Approved=True Failed=True": "Approved,Failed",
	} {
		r := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: "a.b/c", Username: "jane", ExpirationSeconds: new(int32(3600))},
			Status:     certificatesv1.CertificateSigningRequestStatus{Conditions: conditions(conditionsText)},
		}
		if got := fmt.Sprint(row(r, now)); got != "[n 60s a.b/c jane 60m "+want+"]" {
			t.Errorf("%s: %s", conditionsText, got)
		}
	}
	r := &certificatesv1.CertificateSigningRequest{Status: certificatesv1.CertificateSigningRequestStatus{
		Certificate: []byte("x"), Conditions: conditions("Approved=True"),
	}}
	if got := row(r, now); got[4] != "<none>" || got[5] != "Approved,Issued" {
		t.Errorf("%v", got)
	}
}
