// Times of documents, one way everywhere: UTC with its `Z`, and the zone of the reader in the title.

/** Writes a time in UTC to the second. A text that is no time stays as it is. */
export function utc(of: string): string {
  const time = new Date(of);
  if (Number.isNaN(time.getTime()) || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(of)) return of;
  // A time without a zone is not one of the reader's zone: it is shown as it was written.
  if (!/(Z|[+-]\d\d:?\d\d)$/i.test(of)) return of;
  return `${time.toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** Writes a time in the zone of the reader, with its offset. */
export function local(of: string): string {
  const time = new Date(of);
  if (utc(of) === of) return of;
  const minutes = -time.getTimezoneOffset();
  const two = (value: number): string => String(Math.floor(Math.abs(value))).padStart(2, "0");
  const own = new Date(time.getTime() + minutes * 60_000).toISOString().slice(0, 19).replace("T", " ");
  return `${own} ${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}
