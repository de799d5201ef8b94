//! The words for the usual forms, and for some that are not.

use crate::Cron;

#[test]
fn expressions_are_told_in_words() {
    for (text, words) in [
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0/15 * * * *", "Every 15 minutes"),
        ("0 * * * *", "At minute 0 of every hour"),
        ("5,20 * * * *", "At minutes 5 and 20 of every hour"),
        (
            "*/7 * * * *",
            "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
        ),
        ("30 2 * * *", "At 02:30 every day"),
        (
            "0 9,12,17 * * MON-FRI",
            "At 09:00, 12:00 and 17:00 on Monday to Friday",
        ),
        ("0 9 * * 6,0", "At 09:00 on Saturday and Sunday"),
        ("*/15 9-17 * * *", "Every 15 minutes during the hours 09 to 17"),
        ("* 9 * * *", "Every minute during the hour 09"),
        (
            "0 */2 * * *",
            "At minute 0 during the hours 00, 02, 04, 06, 08, 10, 12, 14, 16, 18, 20 and 22",
        ),
        ("0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month"),
        ("0 0 1 1 *", "At 00:00 on day 1 of the month in January"),
        ("0 0 13 * 5", "At 00:00 on day 13 of the month or on Friday"),
        (
            "0 0 */2 * 1",
            "At 00:00 on days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month when that is Monday",
        ),
        ("0 0 1 * 0-6", "At 00:00 every day"),
        ("0 0 L * *", "At 00:00 on the last day of the month"),
        (
            "0 0 L-1,L-3 * *",
            "At 00:00 on the day before the last and 3 days before the last of the month",
        ),
        ("0 0 LW * *", "At 00:00 on the last working day of the month"),
        (
            "0 0 15W * *",
            "At 00:00 on the working day nearest to day 15 of the month",
        ),
        ("0 0 * * 7L", "At 00:00 on the last Sunday of the month"),
        (
            "0 0 * * MON#1,WED",
            "At 00:00 on Wednesday and the first Monday of the month",
        ),
        (
            "0 0 * NOV-FEB *",
            "At 00:00 every day in January, February, November and December",
        ),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("30 * * * * *", "At second 30 of every minute"),
        ("15 30 2 * * *", "At 02:30:15 every day"),
        ("*/20 5 * * * *", "Every 20 seconds of minute 5 of every hour"),
        (
            "7 */5 3 * * *",
            "At second 7 of minutes 0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50 and 55 during the hour 03",
        ),
        ("@weekly", "At 00:00 on Sunday"),
        ("@every 1h30m", "Every 1 hour and 30 minutes"),
        ("@every 90s", "Every 1 minute and 30 seconds"),
        ("@every 2d", "Every 2 days"),
    ] {
        assert_eq!(Cron::parse(text).unwrap().describe(), words, "{text}");
    }
}
