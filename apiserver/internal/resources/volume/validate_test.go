package volume

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
)

// TestClaimFromBeforeTwoSources: a claim that was stored before dataSourceRef
// existed can be updated.
func TestClaimFromBeforeTwoSources(t *testing.T) {
	old := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{
		Kind: "PersistentVolumeClaim", Name: "foo",
	}}}
	now := old.DeepCopy()
	fillSources(&now.Spec)
	if errs := sameClaim(now, old); len(errs) > 0 {
		t.Error(errs)
	}
	if old.Spec.DataSourceRef != nil {
		t.Error("the stored object was changed")
	}
	if now.Spec.DataSourceRef.Name = "bar"; len(sameClaim(now, old)) == 0 {
		t.Error("another source is taken")
	}
}

// One that upstream's server stored, with the alpha feature for it, stays as it is.
func TestStoredClaimOfASourceInAnotherNamespace(t *testing.T) {
	strategy := ClaimStrategy(clock.RealClock{})
	old := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes:   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "foo", Namespace: new("far")},
		Resources:     corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	now := old.DeepCopy()
	strategy.Update.Prepare(t.Context(), now, old)
	if errs := strategy.Update.Validate(t.Context(), now, old); len(errs) > 0 || now.Spec.DataSource != nil {
		t.Errorf("%v, with %v", errs, now.Spec.DataSource)
	}
}

// TestAffinityOfAVolumeMayTakeStableLabels: the node affinity of a volume stays, but the names
// of labels in beta may give way to those that the labels have since.
func TestAffinityOfAVolumeMayTakeStableLabels(t *testing.T) {
	affinity := func(keysAndValues ...string) *corev1.VolumeNodeAffinity {
		var all []corev1.NodeSelectorRequirement
		for i := 0; i < len(keysAndValues); i += 2 {
			all = append(all, corev1.NodeSelectorRequirement{Key: keysAndValues[i], Operator: corev1.NodeSelectorOpIn, Values: keysAndValues[i+1 : i+2]})
		}
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}}
	}
	const zone, region = corev1.LabelTopologyZone, corev1.LabelTopologyRegion
	const betaZone, betaRegion = corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion
	for name, test := range map[string]struct {
		old, now *corev1.VolumeNodeAffinity
		allowed  bool
	}{
		"the same":           {affinity(betaZone, "a"), affinity(betaZone, "a"), true},
		"first ever":         {nil, affinity(zone, "a"), true},
		"stable name":        {affinity(betaZone, "a"), affinity(zone, "a"), true},
		"some of them":       {affinity(betaZone, "a", betaRegion, "r"), affinity(betaZone, "a", region, "r"), true},
		"processor":          {affinity("beta.kubernetes.io/arch", "arm64"), affinity(corev1.LabelArchStable, "arm64"), true},
		"another value":      {affinity(betaZone, "a"), affinity(zone, "b"), false},
		"another label":      {affinity(betaZone, "a"), affinity(region, "a"), false},
		"back to beta":       {affinity(zone, "a"), affinity(betaZone, "a"), false},
		"one more":           {affinity(betaZone, "a"), affinity(zone, "a", region, "r"), false},
		"taken away":         {affinity(betaZone, "a"), nil, false},
		"without conditions": {affinity(betaZone, "a"), &corev1.VolumeNodeAffinity{}, false},
	} {
		old, now := &corev1.PersistentVolumeSpec{NodeAffinity: test.old}, &corev1.PersistentVolumeSpec{NodeAffinity: test.now}
		before := old.DeepCopy()
		if errs := sameVolume(now, old); (len(errs) == 0) != test.allowed {
			t.Errorf("%s: %v", name, errs)
		}
		if !equality.Semantic.DeepEqual(old, before) {
			t.Errorf("%s: the stored object was changed", name)
		}
	}
}

// TestNameOfAnISCSIInterface: with an initiator, the volume's and the portal's name together
// name an interface of the node, and are short. The secret has a name.
func TestNameOfAnISCSIInterface(t *testing.T) {
	v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.2.15:3260", IQN: "iqn.2001-04.com.example:a"},
	}}}
	v.Spec.ISCSI.SecretRef = &corev1.SecretReference{Namespace: "n"}
	if errs := validateVolume(v); !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == "spec.iscsi.secretRef.name" }) {
		t.Errorf("a secret without a name is taken: %v", errs)
	}
	v.Name = strings.Repeat("v", 50)
	refused := func() bool {
		return slices.ContainsFunc(validateVolume(v), func(e *field.Error) bool { return e.Field == "spec.iscsi.targetportal" })
	}
	if refused() {
		t.Error("without an initiator it is refused")
	}
	v.Spec.ISCSI.InitiatorName = &v.Spec.ISCSI.IQN
	if !refused() {
		t.Error("with an initiator it is taken")
	}
	if v.Name = v.Name[1:]; refused() {
		t.Error("64 characters are refused")
	}
}
