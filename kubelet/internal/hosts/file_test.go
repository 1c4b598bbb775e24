package hosts

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/podfiles"
	"kctl/proto/core"
)

// A container can make its hosts file as large as it likes: the file is
// rewritten without being read.
func TestHostsFileThatAContainerMadeLarge(t *testing.T) {
	dir := t.TempDir()
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	path, err := CreateFile(dir, "u")
	if err != nil || filepath.Dir(path) != podfiles.PodDir(dir, "u") {
		t.Fatalf("the hosts file is %s, %v", path, err)
	}
	for _, size := range []int64{0, 8 << 40, 1} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(dir, "", pod, []string{"10.0.0.2"}); err != nil {
			t.Fatal(err)
		}
		want, err := content("", pod, []string{"10.0.0.2"})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != int64(len(want)) {
			t.Fatalf("of %d bytes are left %v, %v; want %d", size, info, err, len(want))
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("hosts = %q, %v", got, err)
		}
	}
}
