package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// certificateRequest makes a key, and a request for a certificate for it.
func certificateRequest(t *testing.T, name, signer string, template x509.CertificateRequest,
	usages ...certificatesv1.KeyUsage) (*certificatesv1.CertificateSigningRequest, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages,
		},
	}, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// TestNodeJoins is a kubelet's way into a cluster: a bootstrap token, a request
// that is approved and signed automatically, and the use of the certificate.
func TestNodeJoins(t *testing.T) {
	t.Parallel()
	c := startSigning(t)
	bootstrappers := rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:bootstrappers"}
	c.Bind("ask", "system:node-bootstrapper", bootstrappers)
	c.Must(c.Root().Resource(core.Secrets, core.NamespaceSystem).Create(t.Context(), &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"},
	}, nil))
	requests := c.Token("abcdef.0123456789abcdef").Resource(core.CertificateSigningRequests, "")
	node := x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}}}
	wish, key := certificateRequest(t, "n1", certificatesv1.KubeAPIServerClientKubeletSignerName, node, "digital signature", "client auth")
	wish.Spec.Username, wish.Spec.Groups = "root", []string{"system:masters"}
	c.Until("bootstrappers may ask", func(ctx context.Context) bool { return requests.Create(ctx, wish, wish) == nil })
	if wish.Spec.Username != "system:bootstrap:abcdef" || strings.Contains(strings.Join(wish.Spec.Groups, " "), "masters") {
		t.Errorf("asked as %+v", wish.Spec)
	}
	c.Bind("approve", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", bootstrappers)
	// A change to the request triggers a new check of the permission.
	c.Until("bootstrappers may have one", func(ctx context.Context) bool {
		return c.Root().Do(ctx, http.MethodPatch, core.CertificateSigningRequests.Path("", "n1"),
			[]byte(`{"metadata":{"labels":{"at":"`+time.Now().Format("150405.000000")+`"}}}`), nil,
			rest.ContentType("application/merge-patch+json")) == nil && requests.Get(ctx, "n1", wish) == nil && len(wish.Status.Certificate) > 0
	})
	kubelet := c.Client(&rest.Config{CertData: wish.Status.Certificate, KeyData: key})
	user, err := c.whoami(kubelet)
	if err != nil || user.Username != "system:node:n1" {
		t.Fatalf("%+v %v", user, err)
	}
	c.Must(kubelet.Resource(core.Nodes, "").Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	// Its serving certificate needs somebody's approval.
	serving := node
	serving.DNSNames = []string{"n1"}
	wish, _ = certificateRequest(t, "n1-serving", certificatesv1.KubeletServingSignerName, serving, "digital signature", "server auth")
	c.Must(kubelet.Resource(core.CertificateSigningRequests, "").Create(t.Context(), wish, wish))
	c.Must(decide(c.Root(), wish, certificatesv1.CertificateApproved))
	c.Until("the serving certificate is there", func(ctx context.Context) bool {
		return c.Root().Resource(core.CertificateSigningRequests, "").Get(ctx, "n1-serving", wish) == nil && len(wish.Status.Certificate) > 0
	})
}

func startSigning(t *testing.T) *cluster {
	return start(t, func(o *config.Options) {
		o.BootstrapTokenAuth = true
		ca, err := pki.NewCA("signing", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		o.ClusterSigning.CertFile, o.ClusterSigning.KeyFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
		if err := ca.Save(o.ClusterSigning.CertFile, o.ClusterSigning.KeyFile); err != nil {
			t.Fatal(err)
		}
		o.ClientCAFile = o.ClusterSigning.CertFile
	})
}

func decide(client *rest.Client, r *certificatesv1.CertificateSigningRequest, decision certificatesv1.RequestConditionType) error {
	decided := r.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: decision, Status: "True", Reason: "Test",
	})
	return client.Do(context.Background(), http.MethodPut, core.CertificateSigningRequests.Path("", r.Name)+"/approval", decided, nil)
}

func TestWhoDecidesAboutCertificates(t *testing.T) {
	t.Parallel()
	c := startSigning(t)
	requests := c.Root().Resource(core.CertificateSigningRequests, "")
	client := x509.CertificateRequest{Subject: pkix.Name{CommonName: "bob"}}
	signer := certificatesv1.KubeAPIServerClientSignerName

	masters := client
	masters.Subject.Organization = []string{"system:masters"}
	wish, _ := certificateRequest(t, "masters", signer, masters, "client auth")
	if err := requests.Create(t.Context(), wish, nil); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed") {
		t.Errorf("a certificate for masters: %v", err)
	}

	// A user who may write approvals, but not approve for the signer.
	wish, _ = certificateRequest(t, "bob", signer, client, "client auth")
	c.Must(requests.Create(t.Context(), wish, wish))
	c.Must(c.Root().Resource(core.ClusterRoles, "").Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "writer"},
		Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"update", "patch", "get"}, APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"},
		}},
	}, nil))
	c.Bind("writer", "writer", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "jane"})
	jane := c.Token("nobody")
	c.Until("jane may write", func(ctx context.Context) bool {
		return jane.Resource(core.CertificateSigningRequests, "").Get(ctx, "bob", wish) == nil
	})
	other := wish.DeepCopy()
	other.Spec.SignerName = "acme.test/own"
	if err := decide(jane, other, certificatesv1.CertificateApproved); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"`) {
		t.Errorf("jane approved: %v", err)
	}
	forged := wish.DeepCopy()
	forged.Status.Certificate = c.CA.Cert
	err := jane.Do(t.Context(), http.MethodPut, core.CertificateSigningRequests.Path("", "bob")+"/status", forged, nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user not permitted to sign requests with signerName "kubernetes.io/kube-apiserver-client"`) {
		t.Errorf("jane signed: %v", err)
	}
	c.Must(jane.Do(t.Context(), http.MethodPut, core.CertificateSigningRequests.Path("", "bob")+"/status", wish, nil)) // changes nothing

	// Denied requests are never signed, invalid ones fail.
	c.Must(decide(c.Root(), wish, certificatesv1.CertificateDenied))
	if err := decide(c.Root(), wish, certificatesv1.CertificateApproved); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Errorf("approved after it was denied: %v", err)
	}
	wish, _ = certificateRequest(t, "server", signer, client, "server auth")
	c.Must(requests.Create(t.Context(), wish, wish))
	c.Must(decide(c.Root(), wish, certificatesv1.CertificateApproved))
	c.Until("the signer says why not", func(ctx context.Context) bool {
		if err := requests.Get(ctx, "server", wish); err != nil || len(wish.Status.Conditions) < 2 {
			return false
		}
		failed := wish.Status.Conditions[1]
		return failed.Type == certificatesv1.CertificateFailed && failed.Reason == "SignerValidationFailure" &&
			failed.Message == `usages did not include "client auth"`
	})
	c.Must(requests.Get(t.Context(), "bob", wish))
	if len(wish.Status.Certificate) > 0 {
		t.Error("a denied request was signed")
	}
}
