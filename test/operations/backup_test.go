package operations_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kctl/test/harness"
)

// disaster is how one kind of store is backed up, lost and restored.
type disaster struct {
	endpoints string
	// destroy deletes the store's data. It stops an external etcd first.
	destroy func()
	// restore restores the data from a backup with restore.sh.
	restore func(backup string)
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		s := harness.StartServer(t)
		data := filepath.Join(s.Dir, "etcd")
		survive(t, s, disaster{
			endpoints: "unix://" + data + "/etcd.sock",
			destroy:   func() { remove(t, data) },
			restore:   func(backup string) { s.MustShell("deploy/backup/restore.sh '" + backup + "' " + data + " --embedded") },
		})
	})
	for _, count := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", count), func(t *testing.T) {
			m := newMembers(t, count)
			m.start()
			s := harness.StartServer(t, "--etcd-servers="+m.endpoints())
			survive(t, s, disaster{
				endpoints: m.all[0].client,
				destroy: func() {
					m.stop()
					for _, one := range m.all {
						remove(t, one.data)
					}
				},
				restore: func(backup string) {
					at := "AT=" + s.MustShell("date +%s%6N")
					for _, one := range m.all {
						s.MustShell(strings.Join([]string{at, "deploy/backup/restore.sh", "'" + backup + "'", one.data, "--name=" + one.name,
							"--initial-advertise-peer-urls=" + one.peer, m.cluster(), "--initial-cluster-token=restored"}, " "))
					}
					m.start()
				},
			})
		})
	}
}

func remove(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// survive makes some writes, a backup and more writes, then loses everything
// and restores the backup. The writes before the backup are there and the later
// ones are not, a client that has watched all the time agrees, and new writes
// work.
func survive(t *testing.T, s *harness.Server, d disaster) {
	t.Helper()
	client := s.Client()
	known := watchConfigMaps(t, client)
	write(t, client, "before-1", "before-2")
	env := []string{"ETCDCTL_ENDPOINTS=" + d.endpoints, "ALSO=" + s.Dir + "/tokens.csv", "KEEP=2"}
	neighbour := filepath.Join(t.TempDir(), "my")
	into := neighbour + " backups"
	if err := os.Mkdir(neighbour, 0o700); err != nil {
		t.Fatal(err)
	}
	backup := s.MustShell("deploy/backup/backup.sh '"+into+"'", env...)
	write(t, client, "after-1", "after-2")
	known.are(t, "after-1", "after-2", "before-1", "before-2")

	s.Stop()
	d.destroy()
	d.restore(backup)
	s.Start()
	known.are(t, "before-1", "before-2")
	write(t, client, "again")
	known.are(t, "again", "before-1", "before-2")
	if got := names(t, client); !slices.Equal(got, []string{"again", "before-1", "before-2"}) {
		t.Errorf("the server has %v", got)
	}
	if files := s.MustShell("tar -tf '" + backup + "/files.tar'"); files != strings.TrimPrefix(s.Dir, "/")+"/tokens.csv" {
		t.Errorf("beside the snapshot: %s", files)
	}
	for range 3 {
		backup = s.MustShell("deploy/backup/backup.sh '"+into+"'", env...)
	}
	if kept, _ := filepath.Glob(into + "/backup-*"); len(kept) != 2 || kept[1] != backup {
		t.Errorf("kept: %v", kept)
	}
	if _, err := os.Stat(neighbour); err != nil {
		t.Errorf("beside the folder with the backups: %v", err)
	}
}

// watched is what a client-go informer has seen.
type watched struct{ store cache.Store }

func watchConfigMaps(t *testing.T, client *kubernetes.Clientset) watched {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	return watched{informer.GetStore()}
}

func (w watched) are(t *testing.T, want ...string) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func() error {
		got := map[string]bool{}
		for _, key := range w.store.ListKeys() {
			got[strings.TrimPrefix(key, "default/")] = true
		}
		delete(got, "kube-root-ca.crt")
		if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
			return fmt.Errorf("the watcher knows %v, want %v", all, want)
		}
		return nil
	})
}

func write(t *testing.T, client *kubernetes.Clientset, all ...string) {
	t.Helper()
	for _, name := range all {
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, client *kubernetes.Clientset) []string {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range list.Items {
		if c.Name != "kube-root-ca.crt" {
			all = append(all, c.Name)
		}
	}
	slices.Sort(all)
	return all
}

// tellsRevision is the part of an etcdutl that restore.sh asks first.
const tellsRevision = "[ $2 = restore ] || { echo '{\"revision\":7}'; exit; }\n"

// A backup that can't be restored is refused, and nothing is changed.
func TestRestoreRefuses(t *testing.T) {
	s := harness.StartServer(t)
	data := filepath.Join(s.Dir, "etcd")
	backup := s.MustShell("deploy/backup/backup.sh "+t.TempDir(), "ETCDCTL_ENDPOINTS=unix://"+data+"/etcd.sock")
	refuses := func(line, says string) {
		t.Helper()
		out, err := s.Shell(line, "ETCDCTL_ENDPOINTS=http://127.0.0.1:1", "ETCDCTL_DIAL_TIMEOUT=1s", "ETCDCTL_COMMAND_TIMEOUT=2s")
		if err == nil || !strings.Contains(out, says) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	target := t.TempDir()
	refuses("deploy/backup/restore.sh "+backup+" "+data+" --embedded", "is not empty")
	refuses("deploy/backup/restore.sh "+target+" "+target+"/etcd", "is no backup")
	three := " --name=a --initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2 --initial-advertise-peer-urls=http://127.0.0.1:1"
	refuses("deploy/backup/restore.sh "+backup+" "+target+"/etcd"+three, "set AT to the same for each member")
	refuses("AT=1785500000 deploy/backup/restore.sh "+backup+" "+target+"/etcd"+three, "is no time of these centuries")
	// One that is interrupted leaves nothing behind, and has not begun to fill what is mounted
	// where it goes from another disk.
	mounted, made := t.TempDir(), filepath.Join(t.TempDir(), "made")
	interrupted := "#!/bin/sh\n" + tellsRevision + "for flag; do case $flag in --data-dir=*) mkdir ${flag#*=}; echo ${flag#*=} >" + made +
		" ;; esac; done\nkill -TERM $PPID\n"
	if err := os.WriteFile(filepath.Join(target, "etcdutl"), []byte(interrupted), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{target + "/etcd", mounted} {
		refuses("PATH="+target+":$PATH deploy/backup/restore.sh "+backup+" "+data, "")
	}
	if at := s.MustShell("cat " + made); !strings.HasPrefix(at, mounted+"/") {
		t.Errorf("restored in %s before it is moved to %s", at, mounted)
	}
	remove(t, filepath.Join(target, "etcdutl"))
	for _, dir := range []string{target, mounted} {
		if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
			t.Errorf("an interrupted restore leaves behind: %v, %v", left, err)
		}
	}
	refuses("flock "+mounted+" deploy/backup/restore.sh "+backup+" "+mounted, "is under way")
	s.MustShell("printf x | dd of=" + backup + "/snapshot.db bs=1 seek=100 conv=notrunc 2>&1")
	refuses("deploy/backup/restore.sh "+backup+" "+target+"/etcd", "is damaged")
	refuses("deploy/backup/backup.sh --help", "usage: ")
	refuses("KEEP=none deploy/backup/backup.sh "+target, "is no number")
	refuses("timeout 60 deploy/backup/backup.sh "+target, "does not answer")
	if left, _ := filepath.Glob(target + "/[^.]*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What a restore that was killed has left is gone with the next one, wherever it goes.
func TestRestoreAfterAKilledOne(t *testing.T) {
	s := harness.StartServer(t)
	backup := s.MustShell("deploy/backup/backup.sh "+t.TempDir(), "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock"))
	killing := t.TempDir()
	script := "#!/bin/sh\n" + tellsRevision + "for flag; do case $flag in --data-dir=*) mkdir ${flag#*=}; echo part >${flag#*=}/part ;; esac; done\n" +
		"kill -KILL $PPID\n"
	if err := os.WriteFile(filepath.Join(killing, "etcdutl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"a new directory": filepath.Join(t.TempDir(), "etcd"), "one that is there": t.TempDir()} {
		if out, err := s.Shell("PATH=" + killing + ":$PATH deploy/backup/restore.sh " + backup + " " + data); err == nil {
			t.Fatalf("%s: the restore that should be killed: %s", name, out)
		}
		if left, _ := filepath.Glob(data + "/.restore/*/part"); len(left) != 1 {
			t.Errorf("%s: there is nothing of a killed restore to remove", name)
		}
		restored(t, s, backup, data)
		if beside, err := os.ReadDir(filepath.Dir(data)); err != nil || name == "a new directory" && len(beside) != 1 {
			t.Errorf("%s: beside it: %v, %v", name, beside, err)
		}
	}
}

// The data directory may be etcd's user's, and root restores into it: what a link there leads to stays as it is.
func TestRestoreFollowsNoLink(t *testing.T) {
	s := harness.StartServer(t)
	backup := s.MustShell("deploy/backup/backup.sh "+t.TempDir(), "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock"))
	data, elsewhere := t.TempDir(), t.TempDir()
	mine := filepath.Join(elsewhere, "mine")
	if err := errors.Join(os.WriteFile(mine, nil, 0o600), os.Symlink(elsewhere, filepath.Join(data, ".restore"))); err != nil {
		t.Fatal(err)
	}
	restored(t, s, backup, data)
	if there, err := os.ReadDir(elsewhere); err != nil || len(there) != 1 || there[0].Name() != "mine" {
		t.Errorf("where the link leads to there is %v, %v", there, err)
	}
}

// A restore is ahead of whatever has been, also of what an earlier one from the same backup has begun: whoever has watched
// that would otherwise wait for changes in a future that comes silently.
func TestARestoreIsAheadOfEarlierOnes(t *testing.T) {
	s := harness.StartServer(t)
	first := s.MustShell("deploy/backup/backup.sh "+t.TempDir(), "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock"))
	revision := func(of string) int64 {
		t.Helper()
		n, err := strconv.ParseInt(s.MustShell("etcdutl snapshot status "+of+` -w json | sed 's/.*"revision":\([0-9]*\).*/\1/'`), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	m := newMembers(t, 1)
	one := m.all[0]
	s.MustShell(strings.Join([]string{"deploy/backup/restore.sh", first, one.data, "--name=" + one.name, m.cluster(),
		"--initial-advertise-peer-urls=" + one.peer}, " "))
	m.start()
	second := s.MustShell("deploy/backup/backup.sh "+t.TempDir(), "ETCDCTL_ENDPOINTS="+one.client)
	m.stop()
	at := revision(first + "/snapshot.db")
	for _, backup := range []string{second, first, second} {
		data := filepath.Join(t.TempDir(), "etcd")
		s.MustShell("deploy/backup/restore.sh " + backup + " " + data)
		before := max(at, revision(second+"/snapshot.db"))
		if at = revision(data + "/member/snap/db"); at <= before {
			t.Errorf("restored at revision %d, after %d", at, before)
		}
	}
	members := map[int64]bool{}
	for range 2 {
		data := filepath.Join(t.TempDir(), "etcd")
		s.MustShell("AT=1785500000000000 deploy/backup/restore.sh " + first + " " + data)
		members[revision(data+"/member/snap/db")] = true
	}
	if !maps.Equal(members, map[int64]bool{1785500000000000: true}) {
		t.Errorf("with the same AT: %v", members)
	}
}

// restored restores a backup into data, where there must be nothing else afterwards.
func restored(t *testing.T, s *harness.Server, backup, data string) {
	t.Helper()
	s.MustShell("deploy/backup/restore.sh " + backup + " " + data)
	if there, err := os.ReadDir(data); err != nil || len(there) != 1 || there[0].Name() != "member" {
		t.Errorf("in the data directory there is %v, %v", there, err)
	}
}

// A snapshot that does not go on is given up, and the next backup need not wait for it: an etcd whose disk hangs
// answers, and sends nothing. (No disk can be made to hang here: an etcdctl that does, and takes no hint, stands for both.)
func TestABackupThatDoesNotGoOnIsGivenUp(t *testing.T) {
	s := harness.StartServer(t)
	hanging, into := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\ncase $1 in snapshot) echo part >$3.part; echo $$ >" + hanging + "/pid; trap '' TERM; exec sleep infinity ;; esac\n"
	if err := os.WriteFile(filepath.Join(hanging, "etcdctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := s.Shell("STALL=1 PATH=" + hanging + ":$PATH timeout 60 deploy/backup/backup.sh " + into)
	if err == nil || !strings.Contains(out, "has not grown for 1 s, at 5 bytes") {
		t.Errorf("%v: %s", err, out)
	}
	harness.Eventually(t, time.Minute, func() error {
		if out, err := s.Shell("kill -0 $(cat " + hanging + "/pid)"); err == nil {
			return fmt.Errorf("the snapshot goes on: %s", out)
		}
		return nil
	})
	if left, err := filepath.Glob(into + "/[^.]*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	s.MustShell("deploy/backup/backup.sh "+into, "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock"))
}

// A clock that was ahead leaves backups that seem to be newer than all that follow.
func TestANewBackupStaysWhateverTheClockWas(t *testing.T) {
	s := harness.StartServer(t)
	into, elsewhere, env := t.TempDir(), filepath.Join(t.TempDir(), "kept"), "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock")
	err := errors.Join(os.WriteFile(elsewhere, []byte("kept"), 0o600), os.Symlink(elsewhere, filepath.Join(into, ".lock")))
	for _, name := range []string{"backup-20250101T000000.1Z", "backup-20250102T000000.1Z", "backup-20980101T000000.1Z", "backup-20980102T000000.1Z"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(into, name), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	first := s.MustShell("KEEP=3 deploy/backup/backup.sh "+into, env)
	want := []string{into + "/backup-20250101T000000.1Z", into + "/backup-20250102T000000.1Z", first}
	if left, err := filepath.Glob(into + "/backup-*"); err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v, %v", left, want, err)
	}
	second := s.MustShell("KEEP=1 deploy/backup/backup.sh "+into, env)
	if left, err := filepath.Glob(into + "/backup-*"); err != nil || !slices.Equal(left, []string{second}) {
		t.Errorf("left: %v, want %v, %v", left, second, err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "kept" {
		t.Errorf("what the lock leads to is %q, %v", text, err)
	}
}

// A backup does not fill a disk, which may be etcd's.
func TestABackupLeavesRoom(t *testing.T) {
	harness.NeedRoot(t)
	s := harness.StartServer(t)
	disk, env := t.TempDir(), "ETCDCTL_ENDPOINTS=unix://"+filepath.Join(s.Dir, "etcd/etcd.sock")
	holds, err := strconv.Atoi(s.MustShell(`etcdctl endpoint status -w json | sed 's/.*"dbSize":\([0-9]*\).*/\1/'`, env))
	if err != nil {
		t.Fatal(err)
	}
	// Room for a snapshot, and for no second one.
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", holds*3/2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	out, err := s.Shell("deploy/backup/backup.sh "+disk, env)
	if left, _ := filepath.Glob(disk + "/[^.]*"); err == nil || !strings.Contains(out, "make room for twice as much") || len(left) > 0 {
		t.Errorf("left %v: %v, %s", left, err, out)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	s.MustShell("deploy/backup/backup.sh "+disk, env)
}
