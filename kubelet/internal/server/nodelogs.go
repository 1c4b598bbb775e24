package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gin-gonic/gin"
	"golang.org/x/sys/unix"
)

// nodeLogs reads the files of the node's own logs (KubeletConfiguration v1beta1,
// enableSystemLogHandler).
func (s *Server) nodeLogs() gin.HandlerFunc {
	if s.NodeLogs == "" {
		return func(c *gin.Context) {
			s.refuse(c, http.StatusMethodNotAllowed, errors.New("logs endpoint is disabled."))
		}
	}
	files := http.StripPrefix("/logs/", http.FileServerFS(logFiles(s.NodeLogs)))
	return func(c *gin.Context) {
		if !s.NodeLogQueries || !s.queryNodeLogs(c) {
			files.ServeHTTP(c.Writer, c.Request)
		}
	}
}

// logFiles is a directory whose links are followed only within it: it has many,
// and pods that must not read the node's disk may write here.
type logFiles string

func (dir logFiles) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	top, err := filepath.EvalSymlinks(string(dir))
	if err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(top, name))
	if err != nil {
		return nil, err
	}
	if target, err = filepath.Rel(top, target); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(target, os.O_RDONLY|unix.O_NONBLOCK, 0) // nobody waits for the other end of a pipe
	if err != nil {                                                 // it leads out of here; for the client it does not exist
		return nil, fs.ErrNotExist
	}
	if info, err := f.Stat(); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, f.Close())
	}
	return f, nil
}
