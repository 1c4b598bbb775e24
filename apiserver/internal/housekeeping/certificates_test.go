package housekeeping

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/pki"
)

func TestHowLongCertificateRequestsStay(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	decided := made.Add(3 * time.Hour)
	ends := func(after time.Duration) []byte {
		pair, err := pki.SelfSigned(pki.Subject{CommonName: "x", Client: true}, made, after)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Cert
	}
	for name, test := range map[string]struct {
		condition   certificatesv1.RequestConditionType
		certificate []byte
		want        time.Duration // since it was created
	}{
		"nobody decides":                   {"", nil, 24 * time.Hour},
		"approved":                         {certificatesv1.CertificateApproved, nil, 4 * time.Hour},
		"denied":                           {certificatesv1.CertificateDenied, nil, 4 * time.Hour},
		"failed":                           {certificatesv1.CertificateFailed, nil, 4 * time.Hour},
		"a condition of somebody's":        {"Own", nil, 24 * time.Hour},
		"a certificate that lasts":         {certificatesv1.CertificateApproved, ends(24 * time.Hour), 4 * time.Hour},
		"a certificate that ends before":   {certificatesv1.CertificateApproved, ends(200 * time.Minute), 200 * time.Minute},
		"a certificate that can't be read": {certificatesv1.CertificateApproved, []byte("x"), 4 * time.Hour},
	} {
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
		r.Status.Certificate = test.certificate
		if test.condition != "" {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: test.condition, LastUpdateTime: metav1.NewTime(decided)}}
		}
		if got := expiryOf(r).Sub(made); got != test.want {
			t.Errorf("%s: it stays for %s, want %s", name, got, test.want)
		}
	}
}
