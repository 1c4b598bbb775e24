package volumebinding

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
	"kctl/scheduler/internal/volumes"
)

// An in-tree volume's zone is that of its driver, where the kubelet has handed it over.
func TestMigratedVolumesAreWhereTheirDriverSays(t *testing.T) {
	zoned := func(id string) *corev1.PersistentVolume {
		return volume("v", "x", "1Gi", "", func(pv *corev1.PersistentVolume) {
			pv.Labels = map[string]string{corev1.LabelTopologyZone: "z"}
			pv.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}
		})
	}
	node := func(name, zone string) *core.Node {
		return fixture.Node(name, fixture.Label("topology.ebs.csi.aws.com/zone", zone))
	}
	bare := fixture.Node("migrated")
	const affinity = "node(s) didn't match PersistentVolume's node affinity"
	for name, test := range map[string]struct {
		node *core.Node
		id   string
		want []string
	}{
		"in its zone":      {node("migrated", "z"), "vol-a", nil},
		"in another":       {node("migrated", "y"), "vol-a", []string{affinity}},
		"without a zone":   {bare, "vol-a", []string{affinity}},
		"another's driver": {node("plain", "y"), "vol-a", nil},
		"no drivers":       {node("none", "y"), "vol-a", nil},
		"no driver would know it": {node("migrated", "z"), "aws://a/b/c", []string{
			"persistent volume v: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://a/b/c)"}},
		"which nobody asks": {node("plain", "z"), "aws://a/b/c", nil},
	} {
		known := volumes.NewKnown(claim("a", "x", "1Gi", boundTo("v")), zoned(test.id),
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: map[string]string{
				corev1.MigratedPluginsAnnotationKey: "kubernetes.io/cinder",
			}}},
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "migrated", Annotations: map[string]string{
				corev1.MigratedPluginsAnnotationKey: "kubernetes.io/cinder,kubernetes.io/aws-ebs",
			}}},
		)
		status := plugintest.Filter(t.Context(), New(known, nil, DefaultOptions), using("a"), fixture.NodeInfo(test.node))
		if !slices.Equal(status.Reasons(), test.want) {
			t.Errorf("%s: %q, want %q", name, status.Reasons(), test.want)
		}
	}
}
