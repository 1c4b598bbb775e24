package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

func TestPackAndUnpack(t *testing.T) {
	from := t.TempDir()
	for name, content := range map[string]string{"a": "one", "deep/er/b": "two", "empty": ""} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	var stream bytes.Buffer
	if err := Pack(&stream, from, "there"); err != nil {
		t.Fatal(err)
	}
	packed := stream.Bytes()
	for name, want := range map[string]string{
		"new":      "new/a new/deep/er/b new/empty",                // a target that does not exist is the new name
		"existing": "existing/a existing/deep/er/b existing/empty", // into a directory that exists
		"not/yet":  "not/yet/a not/yet/deep/er/b not/yet/empty",
	} {
		to := t.TempDir()
		if err := os.Mkdir(filepath.Join(to, "existing"), 0o755); err != nil {
			t.Fatal(err)
		}
		files, err := Unpack(bytes.NewReader(packed), "there", filepath.Join(to, name), func(warning string) { t.Error(warning) })
		if err != nil || files != 3 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
		if got := tree(t, to); got != want {
			t.Errorf("%s: there is %s, want %s", name, got, want)
		}
		if content, err := os.ReadFile(filepath.Join(to, strings.Fields(want)[1])); err != nil || string(content) != "two" {
			t.Errorf("%s: content %q, %v", name, content, err)
		}
	}
}

// A file goes into a directory that is there, also one behind a link, and else under the
// name that is given, also if that is a link to elsewhere.
func TestUnpackAFile(t *testing.T) {
	source := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(source, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := Pack(&stream, source, "f"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": "new", "dir": "dir/f", "link": "dir/f", "not/yet": "not/yet", "not/": "not", "dir/out": "elsewhere"} {
		to := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(to, "dir"), 0o755), os.Symlink("dir", filepath.Join(to, "link")),
			os.Symlink("../elsewhere", filepath.Join(to, "dir", "out"))); err != nil {
			t.Fatal(err)
		}
		if files, err := Unpack(bytes.NewReader(stream.Bytes()), "f", to+"/"+name, func(warning string) { t.Error(warning) }); err != nil || files != 1 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
		if content, err := os.ReadFile(filepath.Join(to, want)); err != nil || string(content) != "one" {
			t.Errorf("%s: content %q, %v", name, content, err)
		}
	}
}

// tar leaves out of its names what leads to the root and above the working directory.
func TestUnpackWhatTarNames(t *testing.T) {
	from := t.TempDir()
	working := filepath.Join(from, "working")
	if err := errors.Join(os.Mkdir(filepath.Join(from, "d"), 0o755), os.MkdirAll(filepath.Join(working, "x"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(from, "d", "f"), filepath.Join(working, "f"), filepath.Join(working, ".f")} {
		if err := os.WriteFile(file, []byte("one"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for asked, want := range map[string]string{
		".": "to/.f to/f", "./": "to/.f to/f", "./f": "to", "f": "to", ".f": "to",
		"../d": "to/f", "../working/../d": "to/f", "../d/f": "to", from + "/d": "to/f", from + "/working/.././d/": "to/f", "x/../../d": "to/f",
		"..": "to/d/f to/working/.f to/working/f",
	} {
		tar := exec.Command("tar", "cf", "-", asked)
		tar.Dir = working
		stream, err := tar.Output()
		if err != nil {
			t.Fatalf("tar cf - %s: %v", asked, err)
		}
		to := t.TempDir()
		if _, err := Unpack(bytes.NewReader(stream), asked, filepath.Join(to, "to"), func(warning string) { t.Error(warning) }); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
		if got := tree(t, to); got != want {
			t.Errorf("%s: there is %q, want %q", asked, got, want)
		}
	}
}

// tar sends the second name of a file as a link to the first; both have the content. What
// the stream has not brought itself is behind no link: a container would be given other files
// of the user's under names of its choice.
func TestHardLinks(t *testing.T) {
	from := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "d", "e"), 0o755), os.WriteFile(filepath.Join(from, "d", "a"), []byte("one"), 0o640),
		os.Link(filepath.Join(from, "d", "a"), filepath.Join(from, "d", "b")),
		os.Link(filepath.Join(from, "d", "a"), filepath.Join(from, "d", "e", "c"))); err != nil {
		t.Fatal(err)
	}
	stream, err := exec.Command("tar", "-C", from, "-cf", "-", "d").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "."} {
		to := filepath.Join(t.TempDir(), name)
		files, err := Unpack(bytes.NewReader(stream), "d", to, func(warning string) { t.Error(warning) })
		if err != nil || files != 3 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
		for _, file := range []string{"a", "b", "e/c"} {
			if content, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(content) != "one" {
				t.Errorf("%s: %s has %q, %v", name, file, content, err)
			}
		}
	}

	for _, link := range []string{"d/secret", "d/link", "secret", "../secret", "d/hard", "d"} {
		to := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(to, "secret"), []byte("secret"), 0o600), os.Symlink("secret", filepath.Join(to, "link"))); err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		out := tar.NewWriter(&stream)
		if err := errors.Join(out.WriteHeader(&tar.Header{Name: "d/hard", Typeflag: tar.TypeLink, Linkname: link}), out.Close()); err != nil {
			t.Fatal(err)
		}
		warnings := 0
		files, err := Unpack(&stream, "d", to, func(string) { warnings++ })
		if err != nil || files != 0 || warnings != 1 || tree(t, to) != "link secret" {
			t.Errorf("a link to %s: %d files, %d warnings, %v; there is %s", link, files, warnings, err, tree(t, to))
		}
	}
}

// Names that are one file at the destination already stay so, with the stream's content: it
// would be lost if the file were opened for writing while it is copied.
func TestHardLinksToWhereTheyAreLinks(t *testing.T) {
	var stream bytes.Buffer
	out := tar.NewWriter(&stream)
	if err := out.WriteHeader(&tar.Header{Name: "d/a", Typeflag: tar.TypeReg, Size: 3, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.WriteHeader(&tar.Header{Name: "d/b", Typeflag: tar.TypeLink, Linkname: "d/a", Mode: 0o644}), out.Close()); err != nil {
		t.Fatal(err)
	}
	for how, link := range map[string]func(of, name string) error{
		"hard":     os.Link,
		"symbolic": func(_, name string) error { return os.Symlink("a", name) },
	} {
		to := t.TempDir()
		a, b := filepath.Join(to, "a"), filepath.Join(to, "b")
		if err := errors.Join(os.WriteFile(a, []byte("before"), 0o600), link(a, b)); err != nil {
			t.Fatal(err)
		}
		files, err := Unpack(bytes.NewReader(stream.Bytes()), "d", to, func(warning string) { t.Error(warning) })
		if err != nil || files != 2 {
			t.Errorf("%s: %d files, %v", how, files, err)
		}
		for _, name := range []string{a, b} {
			if content, err := os.ReadFile(name); err != nil || string(content) != "new" {
				t.Errorf("%s: %s has %q, %v", how, name, content, err)
			}
		}
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			below, _ := filepath.Rel(dir, path)
			files = append(files, below)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, " ")
}

// A container is not trusted with the user's files.
func TestNothingLandsOutside(t *testing.T) {
	cases := map[string][]tar.Header{
		"parent":        {{Name: "data/../../evil", Typeflag: tar.TypeReg}},
		"absolute":      {{Name: "/evil", Typeflag: tar.TypeReg}},
		"not asked for": {{Name: "other", Typeflag: tar.TypeReg}},
		"link":          {{Name: "data/link", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "data/link/evil", Typeflag: tar.TypeReg}},
		"device":        {{Name: "data/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, {Name: "data/null/../../../evil", Typeflag: tar.TypeReg}},
		"pipe":          {{Name: "data/pipe", Typeflag: tar.TypeFifo}},
		"deep":          {{Name: "data/" + strings.Repeat("a/", (maxNameLength-len("data/x"))/2+1) + "x", Typeflag: tar.TypeReg}},
		"control":       {{Name: "data/a", Typeflag: tar.TypeReg}, {Name: "data/a/\x1b]0;evil\a", Typeflag: tar.TypeReg}},
		"hard link":     {{Name: "data/hard", Typeflag: tar.TypeLink, Linkname: "../evil"}},
	}
	for name, headers := range cases {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			out := tar.NewWriter(&stream)
			for i := range headers {
				if err := out.WriteHeader(&headers[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			inner := filepath.Join(dir, "inner")
			if err := os.Mkdir(inner, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := Unpack(&stream, "data", filepath.Join(inner, "to"), func(string) {})
			if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("a name reaches the terminal as it is: %q", err)
			}
			if _, broken := os.Stat(filepath.Join(inner, "to", "a", "a")); name == "deep" && (err == nil || broken == nil) {
				t.Errorf("a name of any length is taken: %v", err)
			}
			for file := range strings.FieldsSeq(tree(t, dir)) {
				if !strings.HasPrefix(file, "inner/to") {
					t.Errorf("%s was written (%v)", file, err)
				}
			}
		})
	}
}

func TestBrokenStream(t *testing.T) {
	if _, err := Unpack(strings.NewReader(strings.Repeat("x", 1000)), "a", t.TempDir(), func(string) {}); err == nil {
		t.Error("garbage was taken for a tar stream")
	}
}
