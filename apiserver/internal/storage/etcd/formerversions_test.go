package etcd

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	flowcontrolv1beta2 "k8s.io/api/flowcontrol/v1beta2"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/scheme"
)

func formerScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1beta1.AddToScheme, batchv1beta1.AddToScheme, certificatesv1beta1.AddToScheme, coordinationv1beta1.AddToScheme,
		flowcontrolv1beta2.AddToScheme, flowcontrolv1beta3.AddToScheme, networkingv1beta1.AddToScheme,
		nodev1beta1.AddToScheme, policyv1beta1.AddToScheme, rbacv1beta1.AddToScheme, resourcev1beta2.AddToScheme,
		schedulingv1beta1.AddToScheme, storagev1beta1.AddToScheme, storagemigrationv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestFormerVersionsHaveTheForm compares the table with upstream's types: every
// field of a former version exists in v1, with the same number and type.
func TestFormerVersionsHaveTheForm(t *testing.T) {
	kinds := 0
	for group, versions := range formerVersions {
		for _, version := range versions {
			for kind, was := range formerScheme(t).KnownTypes(schema.GroupVersion{Group: group, Version: version}) {
				is, known := scheme.Scheme.KnownTypes(schema.GroupVersion{Group: group, Version: "v1"})[kind]
				if !known || otherForm[schema.GroupKind{Group: group, Kind: kind}] || strings.HasSuffix(kind, "List") ||
					strings.HasPrefix(was.PkgPath(), "k8s.io/apimachinery") {
					continue
				}
				kinds++
				sameForm(t, group+"/"+version+" "+kind, was, is, map[reflect.Type]bool{})
			}
		}
	}
	if kinds < 30 {
		t.Errorf("only %d kinds were compared", kinds)
	}
}

// givenUp are fields that v1 no longer has: PodCertificateRequest has its
// stubPKCS10Request instead.
var givenUp = map[string]bool{"PKIXPublicKey": true, "ProofOfPossession": true}

func sameForm(t *testing.T, at string, was, is reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	for was.Kind() == reflect.Pointer || was.Kind() == reflect.Slice {
		was = was.Elem()
	}
	for is.Kind() == reflect.Pointer || is.Kind() == reflect.Slice {
		is = is.Elem()
	}
	if was == is || seen[was] {
		return
	}
	seen[was] = true
	if was.Kind() != is.Kind() {
		t.Errorf("%s was a %s and is a %s", at, was, is)
		return
	}
	if was.Kind() == reflect.Map {
		sameForm(t, at, was.Elem(), is.Elem(), seen)
	}
	if was.Kind() != reflect.Struct {
		return
	}
	numbers := map[string]reflect.StructField{}
	for i := range is.NumField() {
		numbers[number(is.Field(i))] = is.Field(i)
	}
	for i := range was.NumField() {
		field := was.Field(i)
		now, ok := numbers[number(field)]
		if field.Anonymous && number(field) == "" {
			continue
		}
		if !ok && !givenUp[field.Name] {
			t.Errorf("%s.%s is gone", at, field.Name)
		}
		if ok {
			sameForm(t, at+"."+field.Name, field.Type, now.Type, seen)
		}
	}
}

// number is a field's number and encoding in protobuf.
func number(field reflect.StructField) string {
	parts := strings.SplitN(field.Tag.Get("protobuf"), ",", 3)
	return strings.Join(parts[:min(2, len(parts))], ",")
}

// TestFormerVersionsAreRead: objects that upstream stored in a former version
// are read as v1, whether in protobuf or in JSON.
func TestFormerVersionsAreRead(t *testing.T) {
	former := formerScheme(t)
	budget := func(selector *metav1.LabelSelector) runtime.Object {
		return &policyv1beta1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1beta1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: "b"},
			Spec: policyv1beta1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	only := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: deprecatedLabel, Operator: operator}}}
	}
	for want, object := range map[string]runtime.Object{
		`"matchExpressions":[{"key":"` + deprecatedLabel + `","operator":"Exists"}]`: budget(&metav1.LabelSelector{}),
		`"selector":{}`:                        budget(only(metav1.LabelSelectorOpDoesNotExist)),
		`"selector":{"matchLabels":{"a":"b"}}`: budget(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}),
		`"spec":{"parentRef":{"resource":"services","namespace":"n","name":"s"}}`: &networkingv1beta1.IPAddress{
			TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1beta1", Kind: "IPAddress"},
			Spec:     networkingv1beta1.IPAddressSpec{ParentRef: &networkingv1beta1.ParentReference{Resource: "services", Namespace: "n", Name: "s"}}},
	} {
		var inProtobuf bytes.Buffer
		if err := protobuf.NewSerializer(former, former).Encode(object, &inProtobuf); err != nil {
			t.Fatal(err)
		}
		inJSON, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, stored := range [][]byte{inProtobuf.Bytes(), inJSON} {
			value, stale, err := newValues(nil, nil).decode(t.Context(), &mvccpb.KeyValue{Key: []byte("/registry/k"), Value: stored})
			if err != nil || !stale {
				t.Errorf("%.40q: %v, stale %t", stored, err, stale)
				continue
			}
			var head metav1.TypeMeta
			if err := json.Unmarshal(value, &head); err != nil || !strings.HasSuffix(head.APIVersion, "/v1") || !strings.Contains(string(value), want) {
				t.Errorf("%.40q: %s, want %s", stored, value, want)
			}
		}
	}
}
