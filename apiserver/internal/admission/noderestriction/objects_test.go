package noderestriction

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// stored are objects by name.
type stored[T core.Object] map[string]T

func (s stored[T]) Live(_ context.Context, _, name string) (T, error) {
	if obj, ok := s[name]; ok {
		return obj, nil
	}
	var none T
	return none, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, name)
}

func certified(t *testing.T, name, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

// TestObjectsOfNodes: what the kubelet of n1 may write, in kube-apiserver
// v1.37.0's words.
func TestObjectsOfNodes(t *testing.T) {
	meta := func(name, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)}
	}
	p := &core.Pod{ObjectMeta: meta("web", "pod-uid"), Spec: core.PodSpec{NodeName: "n1", ServiceAccountName: "web", Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: "a.b/c"}}}}},
	}}}}
	other, mirror := p.DeepCopy(), p.DeepCopy()
	other.Spec.NodeName = "n2"
	mirror.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
	plugin := &Plugin{
		Pods:       stored[*core.Pod]{"web": p, "other": other, "mirror": mirror},
		Nodes:      stored[*core.Node]{"n1": {ObjectMeta: meta("n1", "node-uid")}},
		Accounts:   stored[*core.ServiceAccount]{"web": {ObjectMeta: meta("web", "account-uid")}},
		Authorizer: rights{"request-serviceaccounts-podcertificate-signer a.b:e shop/web": true},
	}
	asked := func(change func(s *certificatesv1.PodCertificateRequestSpec)) core.Object {
		r := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "a.b/c", PodName: "web", PodUID: "pod-uid", ServiceAccountName: "web", ServiceAccountUID: "account-uid", NodeName: "n1", NodeUID: "node-uid",
		}}
		change(&r.Spec)
		return r
	}
	slice := func(node *string) core.Object {
		return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: node}}
	}
	claim := func(change func(c *corev1.PersistentVolumeClaim)) core.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: meta("disk", "u")}
		change(c)
		return c
	}
	same := func(*corev1.PersistentVolumeClaim) {}
	drivers := func(name string) core.Object { return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	ofFile := func(change func(p *core.Pod)) core.Object {
		p := &core.Pod{ObjectMeta: meta("static-n1", ""), Spec: core.PodSpec{NodeName: "n1"}}
		p.Annotations = map[string]string{core.ConfigMirrorAnnotation: "x"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid", Controller: new(true)}}
		change(p)
		return p
	}
	mounting := func(source corev1.VolumeSource) core.Object {
		return ofFile(func(p *core.Pod) { p.Spec.Volumes = []corev1.Volume{{VolumeSource: source}} })
	}
	const (
		signing, resources, storage = certificatesv1.GroupName, resourcev1.GroupName, storagev1.GroupName
		create, update, remove      = admission.Create, admission.Update, admission.Delete
		serving                     = certificatesv1.KubeletServingSignerName
		onlyGrowth                  = "not allowed to update fields other than status.quantity and status.conditions"
	)
	for name, c := range map[string]struct {
		op        admission.Operation
		group, of string
		part      string
		obj, old  core.Object
		want      string // "" for admitted
	}{
		"certificate": {create, signing, "podcertificaterequests", "", asked(func(*certificatesv1.PodCertificateRequestSpec) {}), nil, ""},
		"certificate, node": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = "n2" }), nil, `NodeName="n2", which is not the requesting node "n1"`},
		"certificate, node's uid": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeUID = "x" }), nil, `names node UID "x"`},
		"certificate, no pod": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "x" }), nil, `while retrieving pod "shop/x"`},
		"certificate, pod's uid": {create, signing, "podcertificaterequests", "", asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "x" }),
			nil, "differs from running pod"},
		"certificate, another's pod": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "other" }), nil, "is not running on node"},
		"certificate, mirror pod": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "mirror" }), nil, "is a mirror pod"},
		"certificate, account": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountName = "x" }), nil, "that differs from running pod"},
		"certificate, account's uid": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountUID = "x" }), nil, "differs from the running service account"},
		"certificate of another signer": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "a.b/d" }), nil,
			`does not mount a podCertificate projected volume for signer "a.b/d"`},
		"certificate by right": {create, signing, "podcertificaterequests", "",
			asked(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "a.b/e" }), nil, ""},
		"certificate, answered": {update, signing, "podcertificaterequests", "status", asked(func(*certificatesv1.PodCertificateRequestSpec) {}), nil,
			"unexpected operation"},
		"own certificate": {create, signing, "certificatesigningrequests", "", certified(t, "system:node:n1", serving), nil, ""},
		"another's certificate": {create, signing, "certificatesigningrequests", "", certified(t, "system:node:n2", serving), nil,
			"can only create a node CSR with CN=system:node:n1"},
		"another's, by another's signer": {create, signing, "certificatesigningrequests", "", certified(t, "x", "a.b/c"), nil, ""},
		"slice":                          {create, resources, "resourceslices", "", slice(new("n1")), nil, ""},
		"slice of another": {create, resources, "resourceslices", "", slice(new("n2")), nil,
			"can only create ResourceSlice with the same NodeName as the requesting node"},
		"slice of all":          {create, resources, "resourceslices", "", slice(nil), nil, "can only create ResourceSlice"},
		"slice of another goes": {remove, resources, "resourceslices", "", nil, slice(new("n2")), "can only modify ResourceSlice"},
		"slice is taken over":   {update, resources, "resourceslices", "", slice(new("n1")), slice(new("n2")), "can only modify ResourceSlice"},
		"drivers":               {create, storage, "csinodes", "", drivers("n1"), nil, ""},
		"drivers of another":    {create, storage, "csinodes", "", drivers("n2"), nil, "can only access CSINode with the same name as the requesting node"},
		"claim grows": {update, "", "persistentvolumeclaims", "status", claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
		}), claim(same), ""},
		"claim is bound": {update, "", "persistentvolumeclaims", "status", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "Bound" }),
			claim(same), onlyGrowth},
		"claim gets labels": {update, "", "persistentvolumeclaims", "status",
			claim(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }), claim(same), onlyGrowth},
		"mirror pod": {create, "", "pods", "", ofFile(func(*core.Pod) {}), nil, ""},
		"mirror pod of nobody": {create, "", "pods", "", ofFile(func(p *core.Pod) { p.OwnerReferences = nil }), nil,
			"can only create pods with an owner reference set to itself"},
		"mirror pod of an earlier node": {create, "", "pods", "", ofFile(func(p *core.Pod) { p.OwnerReferences[0].UID = "x" }), nil,
			"node n1 UID mismatch: expected x got node-uid"},
		"mirror pod of another": {create, "", "pods", "", ofFile(func(p *core.Pod) { p.OwnerReferences[0].Name = "n2" }), nil,
			"can only create pods with an owner reference set to itself"},
		"mirror pod not controlled": {create, "", "pods", "", ofFile(func(p *core.Pod) { p.OwnerReferences[0].Controller = nil }), nil,
			"can only create pods with a controller owner reference set to itself"},
		"mirror pod with a secret": {create, "", "pods", "", mounting(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}}), nil,
			"reference secrets"},
		"mirror pod with endpoints": {create, "", "pods", "", mounting(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}}), nil,
			"reference endpoints (via glusterFS volumes)"},
		"mirror pod with trust": {create, "", "pods", "", mounting(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}},
		}}), nil, "reference clustertrustbundles"},
		"claim gets a volume": {update, "", "persistentvolumeclaims", "", claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), claim(same),
			"unexpected operation"},
	} {
		a := &admission.Attributes{
			Operation: c.op, Resource: core.Resource{Group: c.group, Version: "v1", Name: c.of}, Subresource: c.part, Namespace: "shop", Object: c.obj, OldObject: c.old,
			User: &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}},
		}
		err := plugin.Admit(t.Context(), a)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotYet: if this server may not have seen the pod yet, the kubelet is
// asked to retry instead of being refused. Its node is checked first.
func TestNotYet(t *testing.T) {
	plugin := &Plugin{
		Pods: stored[*core.Pod]{}, Nodes: stored[*core.Node]{"n1": {ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}},
	}
	for uid, want := range map[types.UID]string{"u": `while retrieving pod "shop/web"`, "before": `names node UID "before"`} {
		err := plugin.Admit(t.Context(), &admission.Attributes{
			Operation: admission.Create, Resource: core.Resource{Group: certificatesv1.GroupName, Version: "v1", Name: "podcertificaterequests"}, Namespace: "shop",
			User:   &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}},
			Object: &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{PodName: "web", NodeName: "n1", NodeUID: uid}},
		})
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
