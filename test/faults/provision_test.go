package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kctl/test/harness"
)

const (
	selectedNode = "volume.kubernetes.io/selected-node"
	askedFor     = "volume.kubernetes.io/storage-provisioner"
	driver       = "disks.example.com"
)

// provisioner makes a volume on the node that the scheduler selected, as a
// driver does when the volume binder asks for one. On the first node it makes
// none.
type provisioner struct {
	client  kubernetes.Interface
	refused chan string // gets the node that had no room for volumes
	never   string
}

// run works until ctx ends.
func (p *provisioner) run(ctx context.Context) error {
	w, err := p.client.CoreV1().PersistentVolumeClaims("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
		if ctx.Err() != nil {
			return nil
		}
		if !ok {
			return fmt.Errorf("watch of claims: %v", event.Object)
		}
		node := claim.Annotations[selectedNode]
		if node == "" || claim.Annotations[askedFor] != driver || claim.Spec.VolumeName != "" || event.Type == "DELETED" {
			continue
		}
		if p.never == "" {
			p.never = node
			p.refused <- node
		}
		if node == p.never {
			err = p.refuse(ctx, claim)
		} else {
			err = p.provide(ctx, claim, node)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// refuse removes the selected node from the claim, as drivers do when it has no
// room.
func (p *provisioner) refuse(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+selectedNode+`":null}}}`), metav1.PatchOptions{})
	return err
}

func (p *provisioner) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim.Name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:                      claim.Spec.Resources.Requests,
		AccessModes:                   claim.Spec.AccessModes,
		StorageClassName:              *claim.Spec.StorageClassName,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: claim.Name}},
		ClaimRef: &corev1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}},
	}}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // is about to be bound
	}
	return err
}

// TestVolumesAreMadeWhereThePodGoes: a claim that waits for its pod gets its
// volume on the node that the scheduler selects. If no volume can be made
// there, the pod gives its place back to others, and goes elsewhere.
func TestVolumesAreMadeWhereThePodGoes(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{Without: []string{"registry", "containerd", "kubelet"}})
	client, ctx := c.Client(), t.Context()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	if _, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: driver, VolumeBindingMode: &wait}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	paperNodes(t, c, "disk", 2)
	name := "disks"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &name,
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := client.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := &provisioner{client: client, refused: make(chan string, 1)}
	making, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- p.run(making) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("provisioner: %v", err)
		}
	}()

	pod := paperPod("stores", "disk", "2") // all of a node
	pod.Spec.Volumes = []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	c.Create(pod)
	var full string
	select {
	case full = <-p.refused:
	case <-time.After(60 * time.Second): // only bounds a failing test
		t.Fatal("no node was selected for the claim")
	}
	other := paperPod("other", "disk", "2")
	other.Spec.NodeSelector = map[string]string{corev1.LabelHostname: full}
	c.Create(other)
	c.Await("default", "other", "on the node where no volume can be made", func(p *corev1.Pod) bool { return p.Spec.NodeName == full })
	stored := c.Await("default", "stores", "on a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	now, err := client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
	if err != nil || stored.Spec.NodeName == full || now.Annotations[selectedNode] != stored.Spec.NodeName || now.Spec.VolumeName != "pv-data" {
		t.Errorf("the pod is on %s, its claim is %+v %+v, %v; no volume can be made on %s", stored.Spec.NodeName, now.Annotations, now.Spec, err, full)
	}
}
